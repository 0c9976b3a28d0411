/* Internal to the files of simulator operations: calls into the machine. */
#pragma once
#include "gpu/simt.h"
#include "simulator/simulator.h"

/* sim_ops.c */
LLVMValueRef machine_thread(Simt *s);             /* the SimThread */
LLVMValueRef machine_site(Simt *s);               /* the SimSite of the operation being lowered */
LLVMValueRef machine_scratch(Simt *s, int words); /* memory of the thread's own, of this many 64-bit words */
/* Calls one of the functions that tt_sim_symbol knows. */
#define MACHINE(s, function, result, ...)                                                                    \
    simt_call((s), #function, (result), (LLVMValueRef[]){__VA_ARGS__},                                       \
              (int)(sizeof((LLVMValueRef[]){__VA_ARGS__}) / sizeof(LLVMValueRef)))

/* sim_tensor.c */
extern const TensorOps tt_sim_tensor_ops;
extern const AsyncOps tt_sim_async_ops;
