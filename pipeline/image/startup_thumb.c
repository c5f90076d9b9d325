/* Start-up of a Cortex-M: the vector table, memory as C expects it, main. Source: Armv7-M and Armv8-M Architecture
 * Reference Manuals, exception model and system control space. */
#include "clock.h"
#include "semihosting.h"

extern uint32_t stack_top[], data_start[], data_end[];
extern const uint32_t data_load[];
/* memory to zero: that of .bss, and of parts of the arena elsewhere */
extern const struct { uint32_t *start, *end; } zeroed[], zeroed_end[];
int main(void);
_Noreturn void reset(void);

volatile uint32_t clock_wraps;

static void count_wrap(void) { ++clock_wraps; }

static void fault(void) {
  semihosting(SEMIHOSTING_SAY, "the processor reports a fault\n");
  stop(4);
}

_Noreturn void reset(void) {
  volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88;
  *coprocessors |= 0xFu << 20; /* allows floating point and vectors; ignored by a core without them */
  __asm__ volatile("dsb\n isb" ::: "memory");
  const uint32_t *from = data_load;
  for (uint32_t *to = data_start; to < data_end;) *to++ = *from++;
  for (uint32_t number = 0; zeroed + number < zeroed_end; ++number) {
    for (uint32_t *to = zeroed[number].start; to < zeroed[number].end;) *to++ = 0;
  }
  stop((uintptr_t)main());
}

typedef void (*handler)(void);
/* initial stack, reset, NMI, five faults, four reserved, SVCall, debug, reserved, PendSV, system timer */
__attribute__((section(".vectors"), used)) static const union {
  handler call;
  const void *address;
} vectors[16] = {
    {.address = stack_top}, {.call = reset}, {.call = fault}, {.call = fault}, {.call = fault}, {.call = fault}, {.call = fault}, {.call = fault},
    {.address = 0}, {.address = 0}, {.address = 0}, {.call = fault}, {.call = fault}, {.address = 0}, {.call = fault}, {.call = count_wrap},
};
