/* A libc small enough to compile beside each program: a start, system calls of Linux, numbers in text.
 *
 * zig builds all of musl, a thousand files and 50 s, for each target and place of its package; the compiler's runtime
 * takes 4 s. Declarations are musl's.
 * No function sets errno; no program of passfit reads it. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `_start` passes the first stack pointer to `begin`. `call_linux` takes the number of a system call, and six words. */
#if defined(__aarch64__)
__asm__(".globl _start, call_linux\n"
        "_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n bl begin\n"
        "call_linux: mov x8, x0\n mov x0, x1\n mov x1, x2\n mov x2, x3\n mov x3, x4\n mov x4, x5\n mov x5, x6\n"
        " svc #0\n ret\n");
#elif defined(__arm__)
__asm__(".arm\n .globl _start, call_linux\n .type _start, %function\n .type call_linux, %function\n"
        "_start: mov fp, #0\n mov lr, #0\n mov r0, sp\n bic sp, sp, #15\n bl begin\n"
        "call_linux: push {r4, r5, r7, lr}\n mov r7, r0\n mov r0, r1\n mov r1, r2\n mov r2, r3\n"
        " ldr r3, [sp, #16]\n ldr r4, [sp, #20]\n ldr r5, [sp, #24]\n svc #0\n pop {r4, r5, r7, pc}\n");
#elif defined(__riscv)
__asm__(".globl _start, call_linux\n"
        "_start: mv a0, sp\n andi sp, sp, -16\n call begin\n"
        "call_linux: mv a7, a0\n mv a0, a1\n mv a1, a2\n mv a2, a3\n mv a3, a4\n mv a4, a5\n mv a5, a6\n ecall\n ret\n");
#elif defined(__x86_64__)
__asm__(".globl _start, call_linux\n"
        "_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n"
        "call_linux: mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n mov %r8, %r10\n mov %r9, %r8\n"
        " mov 8(%rsp), %r9\n syscall\n ret\n");
#else
#error "no system calls for this architecture"
#endif

int main(int, char **);
void begin(const size_t *stack);
long call_linux(long number, long a, long b, long c, long d, long e, long f);

static long page_size = 4096;

/* Takes what Linux puts on the stack: the number of arguments, these, the environment, and facts in pairs. */
void begin(const size_t *stack) {
  const size_t *fact = stack + 1 + stack[0] + 1;
  while (*fact++) continue;
  for (; fact[0] != AT_NULL; fact += 2) {
    if (fact[0] == AT_PAGESZ) page_size = (long)fact[1];
  }
  exit(main((int)stack[0], (char **)(stack + 1)));
}

void exit(int code) {
  for (;;) call_linux(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

/* Negative errors of Linux become -1. */
static long checked(long result) { return result < 0 ? -1 : result; }

int open(const char *name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const long mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  return (int)checked(call_linux(SYS_openat, AT_FDCWD, (long)name, flags | O_LARGEFILE, mode, 0, 0));
}

int close(int file) { return (int)checked(call_linux(SYS_close, file, 0, 0, 0, 0, 0)); }

ssize_t read(int file, void *at, size_t bytes) { return checked(call_linux(SYS_read, file, (long)at, (long)bytes, 0, 0, 0)); }

ssize_t write(int file, const void *at, size_t bytes) {
  return checked(call_linux(SYS_write, file, (long)at, (long)bytes, 0, 0, 0));
}

off_t lseek(int file, off_t offset, int from) {
#ifdef SYS__llseek
  off_t place;
  return call_linux(SYS__llseek, file, (long)(offset >> 32), (long)offset, (long)&place, from, 0) < 0 ? -1 : place;
#else
  return checked(call_linux(SYS_lseek, file, offset, from, 0, 0, 0));
#endif
}

/* Offsets are 0 in every program of passfit: the units of mmap2 do not matter. */
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
#ifdef SYS_mmap2
  const long number = SYS_mmap2;
#else
  const long number = SYS_mmap;
#endif
  const long found = call_linux(number, (long)at, (long)bytes, protection, flags, file, (long)offset);
  return (unsigned long)found > -4096UL ? MAP_FAILED : (void *)found;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
#ifdef SYS_clock_gettime64
  return (int)checked(call_linux(SYS_clock_gettime64, clock, (long)time, 0, 0, 0, 0));
#else
  return (int)checked(call_linux(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0));
#endif
}

int prctl(int option, ...) {
  va_list more;
  va_start(more, option);
  const long value = va_arg(more, int);
  va_end(more);
  return (int)checked(call_linux(SYS_prctl, option, value, 0, 0, 0, 0));
}

long sysconf(int name) { return name == _SC_PAGESIZE ? page_size : -1; }

long long strtoll(const char *text, char **end, int base) {
  (void)end, (void)base; /* decimal */
  while (*text == ' ' || *text == '\t') ++text;
  const int negative = *text == '-';
  long long number = 0;
  for (text += negative; *text >= '0' && *text <= '9'; ++text) number = 10 * number + (*text - '0');
  return negative ? -number : number;
}

char *strstr(const char *text, const char *word) {
  const size_t bytes = strlen(word);
  for (; *text; ++text) {
    if (!strncmp(text, word, bytes)) return (char *)text;
  }
  return bytes ? NULL : (char *)text;
}

int strncmp(const char *a, const char *b, size_t most) {
  for (; most && *a && *a == *b; ++a, ++b, --most) continue;
  return most ? (unsigned char)*a - (unsigned char)*b : 0;
}

size_t strlen(const char *text) {
  size_t bytes = 0;
  while (text[bytes]) ++bytes;
  return bytes;
}

/* Kernels copy and fill whole elements: words of memory, unless a part of one is left. */
typedef unsigned long word __attribute__((may_alias));
typedef unsigned int half __attribute__((may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  const size_t places = (size_t)to | (size_t)from | bytes;
  if (places % sizeof(word) == 0) {
    for (size_t i = 0; i < bytes / sizeof(word); ++i) ((word *)to)[i] = ((const word *)from)[i];
  } else if (places % sizeof(half) == 0) {
    for (size_t i = 0; i < bytes / sizeof(half); ++i) ((half *)to)[i] = ((const half *)from)[i];
  } else {
    for (size_t i = 0; i < bytes; ++i) ((char *)to)[i] = ((const char *)from)[i];
  }
  return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
  if ((size_t)to - (size_t)from >= bytes) {
    for (size_t i = 0; i < bytes; ++i) ((char *)to)[i] = ((const char *)from)[i];
  } else {
    for (size_t i = bytes; i-- > 0;) ((char *)to)[i] = ((const char *)from)[i];
  }
  return to;
}

void *memset(void *at, int value, size_t bytes) {
  const word all = (unsigned char)value * ((word)-1 / 255);
  if (((size_t)at | bytes) % sizeof(word) == 0) {
    for (size_t i = 0; i < bytes / sizeof(word); ++i) ((word *)at)[i] = all;
  } else if (((size_t)at | bytes) % sizeof(half) == 0) {
    for (size_t i = 0; i < bytes / sizeof(half); ++i) ((half *)at)[i] = (half)all;
  } else {
    for (size_t i = 0; i < bytes; ++i) ((char *)at)[i] = (char)value;
  }
  return at;
}
