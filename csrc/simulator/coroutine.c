/* The switch saves what the calling convention says a callee must preserve, and the floating-point control words. */
#include "simulator/coroutine.h"

#include <stdint.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

extern void tt_coroutine_jump(Coroutine *from, Coroutine *to);

#if defined(__x86_64__)

/* tt_coroutine_jump(from in rdi, to in rsi). The frame, from the stack pointer up: mxcsr and x87 control word, r15,
 * r14, r13, r12, rbx, rbp, return address. */
__asm__(".text\n"
        ".globl tt_coroutine_jump\n"
        ".hidden tt_coroutine_jump\n"
        ".type tt_coroutine_jump, @function\n"
        "tt_coroutine_jump:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  subq $8, %rsp\n  stmxcsr (%rsp)\n  fnstcw 4(%rsp)\n"
        "  movq %rsp, (%rdi)\n"
        "  movq (%rsi), %rsp\n"
        "  ldmxcsr (%rsp)\n  fldcw 4(%rsp)\n  addq $8, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size tt_coroutine_jump, .-tt_coroutine_jump\n"
        /* First entry: rbx holds the body, r12 its argument. */
        ".globl tt_coroutine_start\n"
        ".hidden tt_coroutine_start\n"
        ".type tt_coroutine_start, @function\n"
        "tt_coroutine_start:\n"
        "  movq %r12, %rdi\n"
        "  callq *%rbx\n"
        "  ud2\n"
        ".size tt_coroutine_start, .-tt_coroutine_start\n");

extern void tt_coroutine_start(void);

static void *set_up(void *stack, size_t stack_size, void (*body)(void *), void *argument)
{
    uint64_t *top = (uint64_t *)(((uintptr_t)stack + stack_size) & ~(uintptr_t)15);
    uint64_t *frame = top - 10; /* the stack is 16-byte aligned where start calls body */
    memset(frame, 0, 10 * sizeof *frame);
    uint32_t mxcsr;
    uint16_t control;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
    frame[0] = mxcsr | (uint64_t)control << 32;
    frame[4] = (uint64_t)(uintptr_t)argument; /* r12 */
    frame[5] = (uint64_t)(uintptr_t)body;     /* rbx */
    frame[7] = (uint64_t)(uintptr_t)tt_coroutine_start;
    return frame;
}

#elif defined(__aarch64__)

/* x19..x30, sp, d8..d15: 176 bytes. x19 holds the body and x20 its argument on first entry. */
__asm__(".text\n"
        ".globl tt_coroutine_jump\n"
        ".hidden tt_coroutine_jump\n"
        ".type tt_coroutine_jump, %function\n"
        "tt_coroutine_jump:\n"
        "  sub sp, sp, #176\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, "
        "[sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  ldr x9, [x1]\n  mov sp, x9\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, "
        "[sp, #144]\n"
        "  add sp, sp, #176\n"
        "  ret\n"
        ".size tt_coroutine_jump, .-tt_coroutine_jump\n"
        ".globl tt_coroutine_start\n"
        ".hidden tt_coroutine_start\n"
        ".type tt_coroutine_start, %function\n"
        "tt_coroutine_start:\n"
        "  mov x0, x20\n  blr x19\n  brk #0\n"
        ".size tt_coroutine_start, .-tt_coroutine_start\n");

extern void tt_coroutine_start(void);

static void *set_up(void *stack, size_t stack_size, void (*body)(void *), void *argument)
{
    uint64_t *frame = (uint64_t *)(((uintptr_t)stack + stack_size) & ~(uintptr_t)15) - 22;
    memset(frame, 0, 22 * sizeof *frame);
    frame[0] = (uint64_t)(uintptr_t)body;
    frame[1] = (uint64_t)(uintptr_t)argument;
    frame[11] = (uint64_t)(uintptr_t)tt_coroutine_start; /* x30 */
    return frame;
}

#else
#error "the simulator's coroutines know x86-64 and AArch64"
#endif

void tt_coroutine_clear(void *stack, size_t stack_size)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(stack, stack_size);
#else
    (void)stack, (void)stack_size;
#endif
}

void tt_coroutine_prepare(Coroutine *coroutine, void *stack, size_t stack_size, void (*body)(void *),
                          void *argument)
{
    tt_coroutine_clear(stack, stack_size);
    *coroutine = (Coroutine){set_up(stack, stack_size, body, argument), stack, stack_size};
}

void tt_coroutine_switch(Coroutine *from, Coroutine *to)
{
#ifdef __SANITIZE_ADDRESS__
    void *own;
    __sanitizer_start_switch_fiber(&own, to->stack, to->stack_size);
    tt_coroutine_jump(from, to);
    __sanitizer_finish_switch_fiber(own, NULL, NULL);
#else
    tt_coroutine_jump(from, to);
#endif
}

void tt_coroutine_entered(Coroutine *from)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &from->stack, &from->stack_size);
#else
    (void)from;
#endif
}
