/* Calls of a debugger or emulator by a program without an operating system. Source: Arm, Semihosting for AArch32 and
 * AArch64 (2.0); RISC-V Semihosting (1.0), which takes the same numbers and parameter blocks. */
#ifndef PASSFIT_SEMIHOSTING_H
#define PASSFIT_SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

enum { SEMIHOSTING_OPEN = 0x01, SEMIHOSTING_CLOSE = 0x02, SEMIHOSTING_SAY = 0x04, SEMIHOSTING_WRITE = 0x05, SEMIHOSTING_READ = 0x06, SEMIHOSTING_EXIT = 0x20 };
/* modes of SEMIHOSTING_OPEN: fopen's "rb" and "wb" */
enum { READ_FILE = 1, WRITE_FILE = 5 };

static inline intptr_t semihosting(int what, const void *parameters) {
#if defined(__riscv)
  register intptr_t number __asm__("a0") = what;
  register const void *block __asm__("a1") = parameters;
  __asm__ volatile(
      ".option push\n .option norvc\n .balign 16\n"
      "slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n .option pop"
      : "+r"(number) : "r"(block) : "memory");
#else
  register intptr_t number __asm__("r0") = what;
  register const void *block __asm__("r1") = parameters;
  __asm__ volatile("bkpt 0xab" : "+r"(number) : "r"(block) : "memory");
#endif
  return number;
}

/* Ends the program; the emulator's exit status is `status`. */
static inline _Noreturn void stop(uintptr_t status) {
  const uintptr_t parameters[] = {0x20026, status}; /* the application ended by itself */
  semihosting(SEMIHOSTING_EXIT, parameters);
  for (;;) {
  }
}

/* Returns a handle of the file, or a negative number. */
static inline intptr_t open_file(const char *name, uintptr_t length, uintptr_t mode) {
  const uintptr_t parameters[] = {(uintptr_t)name, mode, length};
  return semihosting(SEMIHOSTING_OPEN, parameters);
}

/* Returns the number of bytes that were not read. */
static inline uintptr_t read_file(intptr_t file, void *to, uintptr_t bytes) {
  const uintptr_t parameters[] = {(uintptr_t)file, (uintptr_t)to, bytes};
  return (uintptr_t)semihosting(SEMIHOSTING_READ, parameters);
}

/* Returns the number of bytes that were not written. */
static inline uintptr_t write_file(intptr_t file, const void *from, uintptr_t bytes) {
  const uintptr_t parameters[] = {(uintptr_t)file, (uintptr_t)from, bytes};
  return (uintptr_t)semihosting(SEMIHOSTING_WRITE, parameters);
}

#endif
