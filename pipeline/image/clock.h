/* The stack pointer, and a clock that counts instructions under an emulator, and cycles on a device. Cortex-M: the system
 * timer (Armv7-M Architecture Reference Manual, B3.3); RISC-V: mcycle. */
#ifndef PASSFIT_CLOCK_H
#define PASSFIT_CLOCK_H

#include <stdint.h>

#if defined(__riscv)

static inline void start_clock(void) {}

static inline uint64_t read_clock(void) {
  uint32_t high, low, again;
  do {
    __asm__ volatile("csrr %0, mcycleh\n csrr %1, mcycle\n csrr %2, mcycleh" : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
}

static inline uint32_t *stack_pointer(void) {
  uint32_t *found;
  __asm__ volatile("mv %0, sp" : "=r"(found));
  return found;
}

#else

/* Wraps of the timer, which counts 24 bits down. */
extern volatile uint32_t clock_wraps;
/* Control, reload, current value. */
#define CLOCK_TIMER ((volatile uint32_t *)0xE000E010)
#define CLOCK_PERIOD 0x1000000u

static inline void start_clock(void) {
  CLOCK_TIMER[1] = CLOCK_PERIOD - 1;
  CLOCK_TIMER[2] = 0;
  CLOCK_TIMER[0] = 7; /* on, with an exception at each wrap, at the core's clock */
}

static inline uint64_t read_clock(void) {
  uint32_t before, since;
  do {
    before = clock_wraps;
    since = CLOCK_PERIOD - 1 - CLOCK_TIMER[2];
  } while (before != clock_wraps);
  return (uint64_t)before * CLOCK_PERIOD + since;
}

static inline uint32_t *stack_pointer(void) {
  uint32_t *found;
  __asm__ volatile("mov %0, sp" : "=r"(found));
  return found;
}

#endif

#endif
