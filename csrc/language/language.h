/* language: what the front ends' languages have in common, whatever they look like: element types, typed values and the
 * operations on them. No syntax, no names and no Python here. Functions build at the place of a Builder; what they cannot
 * do with a value is the caller's to find out first, and to say in the words of its language. */
#pragma once
#include "ir/ir.h"

/* ---- dtype.c: element types --------------------------------------------------------------------------------------------
 * The IR's integers are signless and its pointers know no const; a Dtype adds both. Interned: compare by pointer. */
typedef struct Dtype {
    const char *name; /* "int32", "uint8", "fp16", "fp8e4nv", "pointer<fp32>", "void" */
    TypeKind kind;    /* of the IR: TT_I1 .. TT_F64 or TT_PTR; TT_VOID */
    bool is_unsigned;
    bool is_const;               /* pointer to memory that must not be written */
    int space;                   /* pointer: memory space, 1 = global */
    const struct Dtype *pointee; /* pointer */
} Dtype;

extern const Dtype tt_int1, tt_int8, tt_int16, tt_int32, tt_int64, tt_uint8, tt_uint16, tt_uint32, tt_uint64,
    tt_fp8e4nv, tt_fp8e5, tt_fp8e4b15, tt_fp8e4b8, tt_fp8e5b16, tt_fp16, tt_bf16, tt_fp32, tt_fp64, tt_void;
const Dtype *tt_dtype_named(const char *name); /* "int32", "fp16", ...; NULL when there is none */
/* As signatures write it: "i32", "*fp32", "*ku8" (memory that is only read); NULL for no type. */
const Dtype *tt_dtype_of_signature(Map *pointers, const char *text);
/* The one of a run, whose pointer types `pointers` holds. */
const Dtype *tt_dtype_pointer_to(Map *pointers, const Dtype *pointee, int space, bool is_const);
const Type *tt_dtype_type(Module *module, const Dtype *dtype); /* the scalar type of the IR */
int tt_dtype_width(const Dtype *dtype);                        /* bits */
const Dtype *tt_dtype_signed(const Dtype *dtype); /* of an integer: of the same width, with a sign */

static inline bool tt_dtype_is_bool(const Dtype *d) { return d->kind == TT_I1; }
static inline bool tt_dtype_is_int(const Dtype *d) { return d->kind <= TT_I64; } /* bool included */
static inline bool tt_dtype_is_float(const Dtype *d) { return d->kind >= TT_F8E4M3 && d->kind <= TT_F64; }
static inline bool tt_dtype_is_fp8(const Dtype *d) { return d->kind >= TT_F8E4M3 && d->kind <= TT_F8E5M2B16; }
static inline bool tt_dtype_is_pointer(const Dtype *d) { return d->kind == TT_PTR; }
/* int1 counts as unsigned. */
static inline bool tt_dtype_is_unsigned(const Dtype *d) { return d->is_unsigned || tt_dtype_is_bool(d); }

/* A scalar or a tile, and what its elements are. */
typedef struct Typed {
    Value *value;
    const Dtype *dtype;
} Typed;

/* ---- casts.c -------------------------------------------------------------------------------------------------------- */

typedef enum Rounding { ROUND_NEAREST_EVEN, ROUND_TO_ZERO } Rounding;
/* Is there a conversion? Between pointers and integers, but not floats; to void from nothing. */
bool tt_can_cast(const Dtype *from, const Dtype *to);
Typed tt_typed_cast(Builder *b, Typed x, const Dtype *to, Rounding rounding);
Typed tt_typed_truth(Builder *b, Typed x);       /* element by element: is it different from zero? */
Typed tt_typed_widen_float(Builder *b, Typed x); /* narrow floats as fp32, other types as they are */

Value *tt_build_filler(Builder *b, const Type *type); /* some value of a type, where none will be read */

/* ---- shapes.c ------------------------------------------------------------------------------------------------------- */

enum { TT_MAX_ELEMENTS = 1 << 20 }; /* of a tile */
typedef struct Shape {
    int rank; /* 0: a scalar */
    int64_t extents[TT_MAX_RANK];
} Shape;
Shape tt_shape_of_type(const Type *type);
bool tt_same_extents(const Shape *a, const Shape *b);
int64_t tt_shape_count(const Shape *shape);
bool tt_shape_is_too_large(const Shape *shape); /* of positive extents: more elements than a tile may have */
const char *tt_shape_format(Arena *arena, const Shape *shape); /* "[64, 32]" */
/* What two shapes broadcast to, from the last dimension on; false when they do not. */
bool tt_broadcast_shapes(const Shape *a, const Shape *b, Shape *out);
/* For two shapes that do not: the dimension of `wide`, which has the higher rank, counted from the front. */
int tt_broadcast_disagreement(const Shape *wide, const Shape *narrow);
/* To a shape that it broadcasts to. Nothing is built for a value that has it already. */
Typed tt_typed_broadcast(Builder *b, Typed x, const Shape *shape);

/* ---- operators.c ---------------------------------------------------------------------------------------------------- */

typedef enum Operator {
    OPERATOR_ADD,
    OPERATOR_SUB,
    OPERATOR_MUL,
    OPERATOR_DIV,
    OPERATOR_FLOORDIV, /* of integers, truncated */
    OPERATOR_MOD,
    OPERATOR_POW,
    OPERATOR_MATMUL,
    OPERATOR_LSHIFT,
    OPERATOR_RSHIFT,
    OPERATOR_AND,
    OPERATOR_OR,
    OPERATOR_XOR,
    OPERATOR_EQ,
    OPERATOR_NE,
    OPERATOR_LT,
    OPERATOR_LE,
    OPERATOR_GT,
    OPERATOR_GE,
    OPERATOR_LOGICAL_AND,
    OPERATOR_LOGICAL_OR, /* element by element */
    OPERATOR_NEG,
    OPERATOR_POS,
    OPERATOR_INVERT,
    OPERATOR_NOT, /* unary */
} Operator;
static inline bool tt_is_comparison(Operator op) { return op >= OPERATOR_EQ && op <= OPERATOR_GE; }
static inline bool tt_is_bitwise(Operator op) { return op >= OPERATOR_LSHIFT && op <= OPERATOR_XOR; }
/* Is there such an operation on floats? */
bool tt_operator_takes_floats(Operator op);
/* Operands of one dtype and one shape, to a result of that dtype, of a comparison to int1. `/` is of floats. */
Typed tt_typed_binary(Builder *b, Operator op, Typed x, Typed y);
Typed tt_typed_negate(Builder *b, Typed x); /* of integers 0 - x; of floats the sign bit */
Typed tt_typed_invert(Builder *b, Typed x); /* all bits of integers */
/* Of int1s of one shape. */
Typed tt_typed_logical(Builder *b, Operator op, Typed x, Typed y);
Typed tt_typed_not(Builder *b, Typed x);
/* pointer + offset or pointer - offset, in elements; broadcasts. */
Typed tt_typed_move_pointer(Builder *b, Operator op, Typed pointer, Typed offset);
/* Addresses are compared as unsigned numbers; broadcasts. */
Typed tt_typed_compare_pointers(Builder *b, Operator op, Typed x, Typed y);
/* Asserts that an operation on integers of one dtype and shape has a quotient, or does not overflow. `name` is what the
 * user wrote: "`+`". */
void tt_typed_check_arithmetic(Builder *b, Operator op, Typed x, Typed y, const char *name);
/* The operation that is the minimum or maximum of the dtype; of floats a NaN loses, or wins. */
Opcode tt_extremum_opcode(const Dtype *dtype, bool largest, bool nan_wins);

/* ---- memory.c ------------------------------------------------------------------------------------------------------- */

/* The kinds of elements that an atomic operation takes on the hardware of all targets. */
enum { ATOMIC_SMALL_FLOATS = 1, ATOMIC_FLOATS = 2, ATOMIC_INTS = 4 };
typedef struct AtomicInfo {
    const char *name; /* "atomic_add" */
    const char *on_signed, *on_unsigned, *on_float;
    int takes;
} AtomicInfo;
const AtomicInfo *tt_atomic_named(const char *name); /* NULL: there is none */
bool tt_atomic_takes(const AtomicInfo *info, const Dtype *dtype);
/* Operands in the pointer's shape, the value of its elements' type; the mask may be NULL. `attrs`: order and scope. */
Typed tt_typed_atomic(Builder *b, const AtomicInfo *info, Typed pointer, Value *value, Value *mask,
                      Attr *attrs);
Typed tt_typed_load(Builder *b, Typed pointer, Value *mask, Value *other, Attr *attrs);
void tt_typed_store(Builder *b, Typed pointer, Value *value, Value *mask, Attr *attrs);
/* Whether a mask holds for any element along an axis, which is gone. */
Value *tt_build_any(Builder *b, Value *mask, int axis);
