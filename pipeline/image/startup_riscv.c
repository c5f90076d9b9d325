/* Start-up of a RISC-V core in machine mode: stack, memory as C expects it, main. Source: The RISC-V Instruction Set
 * Manual, volume II: traps. */
#include "semihosting.h"

extern uint32_t data_start[], data_end[];
extern const uint32_t data_load[];
/* memory to zero: that of .bss, and of parts of the arena elsewhere */
extern const struct { uint32_t *start, *end; } zeroed[], zeroed_end[];
int main(void);
_Noreturn void begin(void);
_Noreturn void fault(void);

__attribute__((section(".vectors"), naked, used)) void reset(void);
__attribute__((section(".vectors"), naked, used)) void reset(void) {
  __asm__ volatile(
      ".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
      "la sp, stack_top\n la t0, fault\n"
      ".option push\n .option arch, +zicsr\n csrw mtvec, t0\n .option pop\n"
      "j begin");
}

__attribute__((aligned(4))) void fault(void) {
  semihosting(SEMIHOSTING_SAY, "the processor reports a fault\n");
  stop(4);
}

_Noreturn void begin(void) {
  const uint32_t *from = data_load;
  for (uint32_t *to = data_start; to < data_end;) *to++ = *from++;
  for (uint32_t number = 0; zeroed + number < zeroed_end; ++number) {
    for (uint32_t *to = zeroed[number].start; to < zeroed[number].end;) *to++ = 0;
  }
  stop((uintptr_t)main());
}
