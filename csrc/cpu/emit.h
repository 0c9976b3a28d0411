/* Building LLVM IR: types, constants, vectors. What is emitted goes to e->b, which the nests move between loop
 * levels. A tile's elements are in LLVM scalars or vectors of this register form: integers as they are, i1 as i1,
 * pointers as ptr, f32 and f64 as themselves, and every narrower float as an integer of its bits (conversions and
 * arithmetic are ours: see narrow_floats.c). In memory i1 is a byte, all else the same. */
#pragma once
#include "codegen/codegen.h"
#include "ir/ir.h"

typedef struct Emit {
    Codegen *codegen;
    Arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, nothing;
    LLVMBuilderRef b;      /* where code goes now */
    LLVMValueRef function; /* that is being emitted */
    bool no_fusion;        /* see CpuOptions */
    int widest;            /* bytes of a machine vector */
    struct Places *places; /* of the code, or NULL: nobody asks for them */
} Emit;

Emit *new_emit(Codegen *codegen, Arena *arena);

/* ---- types ---- */
LLVMTypeRef register_type(const Emit *e, const Type *type); /* of the element */
LLVMTypeRef memory_type(const Emit *e, const Type *type);
/* Width 0 is the scalar itself. */
LLVMTypeRef widened(LLVMTypeRef element, int width);
int width_of(LLVMValueRef value); /* 0 for scalars */
LLVMTypeRef element_of(LLVMTypeRef type);
bool is_float_type(LLVMTypeRef type);
/* `type`'s element replaced, width kept. */
LLVMTypeRef with_element(LLVMTypeRef type, LLVMTypeRef element);

/* ---- constants: scalars or, for a vector type, splats ---- */
LLVMValueRef const_int(LLVMTypeRef type, int64_t value);
LLVMValueRef const_float(LLVMTypeRef type, double value);
/* A constant of a tile element type in register form; `value` as in SCALAR attributes. */
LLVMValueRef const_scalar(const Emit *e, const Type *type, const Attr *value);
LLVMValueRef const_lanes(LLVMTypeRef element, int width, int64_t first, int64_t step);
LLVMValueRef const_mask(const Emit *e, int width, int active); /* the first `active` lanes */

/* ---- vectors ---- */
LLVMValueRef emit_splat(Emit *e, LLVMValueRef scalar, int width);
LLVMValueRef emit_lane(Emit *e, LLVMValueRef vector, int lane);
/* Lanes indices[i] of a and b together; -1 for any. */
LLVMValueRef emit_shuffle(Emit *e, LLVMValueRef a, LLVMValueRef b, const int *indices, int count);
/* `count` lanes of `vector` from `first` on; a scalar when count is 0. */
LLVMValueRef emit_part(Emit *e, LLVMValueRef vector, int first, int count);
/* The lanes of a, then those of b, which has as many or fewer. */
LLVMValueRef emit_join(Emit *e, LLVMValueRef a, LLVMValueRef b);
bool is_all_true(LLVMValueRef mask); /* by its being constant; NULL, no mask, is */
LLVMValueRef emit_select(Emit *e, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b);

/* ---- calls ---- */
/* An LLVM intrinsic overloaded on `types`. */
LLVMValueRef emit_intrinsic(Emit *e, const char *name, const LLVMTypeRef *types, int type_count,
                            LLVMValueRef *args, int arg_count);
LLVMValueRef emit_intrinsic1(Emit *e, const char *name, LLVMValueRef x); /* overloaded on x's type */
LLVMValueRef emit_intrinsic2(Emit *e, const char *name, LLVMValueRef x, LLVMValueRef y);
/* A C function that tt_cpu_symbol knows. */
LLVMValueRef emit_call(Emit *e, const char *name, LLVMTypeRef result, LLVMValueRef *args, int arg_count);

/* ---- memory ---- */
LLVMValueRef emit_load(Emit *e, LLVMTypeRef type, LLVMValueRef pointer, int align);
LLVMValueRef emit_store(Emit *e, LLVMValueRef value, LLVMValueRef pointer, int align);
/* Vector accesses of the lanes in `mask` (NULL: all); a load gives `other` (NULL: zero) elsewhere. Contiguous at one
 * pointer, or lane by lane at a vector of pointers. */
LLVMValueRef emit_masked_load(Emit *e, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef mask,
                              LLVMValueRef other, int align);
void emit_masked_store(Emit *e, LLVMValueRef value, LLVMValueRef pointer, LLVMValueRef mask, int align);
LLVMValueRef emit_offset(Emit *e, LLVMValueRef pointer, int64_t bytes);
LLVMValueRef emit_index(Emit *e, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index);
LLVMValueRef to_memory_form(Emit *e, LLVMValueRef value);
LLVMValueRef to_register_form(Emit *e, LLVMValueRef value, const Type *type);

/* ---- places.c ---- */
typedef struct Places Places;
Places *new_places(Arena *arena);
const char *place_text(const Places *places, int number); /* NULL if there is none */
/* Around a function that is emitted, in the midst of another one perhaps. */
void *enter_places(Emit *e, LLVMValueRef function, const char *name);
void leave_places(Emit *e, void *before);
/* Around the instructions by which `op` touches the user's memory. */
void begin_access(Emit *e, const Op *op);
void end_access(Emit *e);
void finish_places(Emit *e); /* once all is emitted */

/* ---- loops: do { ... } while (++i < count) with i64 i, count >= 1, and values carried around ---- */
typedef struct EmitLoop {
    LLVMBasicBlockRef header;
    LLVMValueRef index; /* first, first + step, ... */
    LLVMValueRef *phis;
    int phi_count;
    LLVMValueRef end;
    int64_t step;
} EmitLoop;
LLVMBasicBlockRef new_block(Emit *e, const char *name);
EmitLoop begin_loop(Emit *e, int64_t first, int64_t end, int64_t step, LLVMValueRef *carried,
                    int carried_count);
EmitLoop begin_loop_between(Emit *e, LLVMValueRef first, LLVMValueRef end, int64_t step,
                            LLVMValueRef *carried, int carried_count);
/* `carried` holds the values at the end of the body; after the call e->b is behind the loop, where they are final. */
void end_loop(Emit *e, EmitLoop *loop, LLVMValueRef *carried);

/* ---- elementwise.c ---- */
/* One pure elementwise operation on values that are all scalars or all vectors of one width. */
LLVMValueRef emit_elementwise(Emit *e, const Op *op, LLVMValueRef *operands);
/* Float to float, or signed integer to a wider one. */
LLVMValueRef emit_element_cast(Emit *e, LLVMValueRef value, const Type *from, const Type *to);

/* ---- narrow_floats.c ---- */
LLVMValueRef emit_float_cast(Emit *e, LLVMValueRef value, const Type *from, const Type *to, bool toward_zero);
/* Between the register form of `type` and the type its arithmetic is done in (f32 for narrow floats). */
LLVMValueRef emit_widen(Emit *e, LLVMValueRef value, const Type *type);
LLVMValueRef emit_narrow(Emit *e, LLVMValueRef value, const Type *type);

/* ---- math.c ---- */
/* A function of the mathematical library by its C name, on f32 or f64 scalars or vectors. */
LLVMValueRef emit_math(Emit *e, const Op *op, const char *name, LLVMValueRef *args, int arg_count);

/* ---- exponentials.c ---- */
/* exp, exp2, exp10, erf, log or log2 of f32 in line; NULL for any other function or type. */
LLVMValueRef emit_exponential(Emit *e, const char *name, LLVMTypeRef type, LLVMValueRef x);
