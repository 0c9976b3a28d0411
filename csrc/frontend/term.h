/* term.h: what the walker (walk_*.c, calls.c, ...) and the language (semantic*.c, builtins*.c) share: the Walker, the
 * Terms it computes with, and the functions each side offers the other. Internal to frontend/. */
#pragma once
#include "frontend/frontend.h"
#include "language/language.h"

typedef struct Walker Walker;

/* ---- dtype.c: element types as Python objects ----------------------------------------------------------------------- */

const Dtype *tt_pointer_dtype(Walker *w, const Dtype *pointee, int space, bool is_const);
const Dtype *tt_dtype_from_object(Walker *w,
                                  PyObject *object); /* tl.dtype or tl.pointer_type; NULL for anything else */
PyObject *tt_dtype_to_object(Walker *w, const Dtype *dtype);  /* borrowed */
const char *tt_dtype_spelling(Walker *w, const Dtype *dtype); /* as users write it: "tl.float32" */
const Type *tt_dtype_ir(Walker *w, const Dtype *dtype);       /* scalar IR type */
const Type *tt_dtype_shaped(Walker *w, const Dtype *dtype, const int64_t *shape,
                            int rank); /* rank 0: the scalar */

/* ---- Terms: what a Python expression evaluates to -------------------------------------------------------------------
 * Numbers: a literal, a tl.constexpr parameter, anything computed from such by Python is a PYTHON term and weak in
 * promotion. Assigning it to a name that is not annotated tl.constexpr, or returning it, makes it a VALUE: a `constant`
 * of the number's own dtype (int32, else int64, ...; fp32). Reading a compile-time value (tt_term_python, tt_arg_int, ...)
 * looks through such constants, so `n = 4; tl.arange(0, n)` is fine. */
typedef enum TermKind {
    TERM_UNDEFINED, /* only in the scope: a name without a value here; never reaches a builtin */
    TERM_VALUE,     /* run-time scalar or tile: value + dtype */
    TERM_PYTHON, /* compile-time Python object, never a tuple and never a tl.constexpr (both are unpacked) */
    TERM_TUPLE,  /* items; a list display is one too; object: its namedtuple type or NULL */
    TERM_SLICE,  /* items: start, stop, step (None when absent); only as an index */
    TERM_BLOCK_POINTER, /* items: base pointer, then the tuples shape, strides, offsets; block: its compile-time part */
    TERM_METHOD, /* object: the callable; items[0]: self */
} TermKind;

typedef struct BlockShape {
    int rank;
    int64_t shape[TT_MAX_RANK];
    int order[TT_MAX_RANK];
} BlockShape;

typedef struct Term {
    TermKind kind;
    int count; /* of items */
    union {
        const Dtype *dtype;      /* VALUE */
        PyObject *object;        /* PYTHON, TUPLE, METHOD; borrowed: the walker keeps it until the run ends */
        const BlockShape *block; /* BLOCK_POINTER */
        struct Undefined *undefined; /* UNDEFINED: why, or NULL */
    };
    union {
        Value *value;       /* VALUE */
        struct Term *items; /* in the arena; not changed once built */
    };
} Term;

/* The run: one tt_frontend_build. `builder` is where operations go and builder.loc the innermost expression. */
struct Walker {
    Arena *arena;
    Module *module;
    Builder builder;
    PyObject *options;              /* dict of the request */
    const struct BuiltinCall *call; /* the builtin being called, for messages */
    struct WalkerState *state;      /* the walker's own: walker.h */
};

typedef struct BuiltinCall {
    const char *name;              /* "load" */
    const char *const *parameters; /* names, in the stub's order */
    int parameter_count;
} BuiltinCall;

/* ---- term.c: making and reading Terms --------------------------------------------------------------------------- */

Term tt_value_term(Value *value, const Dtype *dtype);
Term tt_typed_term(Typed x);
Typed tt_typed_of(Term t); /* of a VALUE */
Term tt_python_term(Walker *w,
                    PyObject *object); /* borrowed object; unwraps tl.constexpr, tuples become TUPLE */
Term tt_new_python_term(Walker *w, PyObject *object); /* steals; NULL raises the pending Python exception */
Term tt_none(Walker *w);
Term tt_int_term(Walker *w, int64_t value);
Term tt_bool_term(Walker *w, bool value);
Term tt_string_term(Walker *w, const char *text);
Term tt_dtype_term(Walker *w, const Dtype *dtype);
Term tt_tuple_term(Walker *w, const Term *items, int count); /* copies items */
/* A tuple for the terms of that tuple, to be filled in; of its class, if it has names for them. */
Term tt_tuple_like(Walker *w, PyObject *tuple);
Term tt_as_slice(Walker *w, Term t); /* Python's slice(a, b) is a:b; others stay */
Term tt_shape_term(Walker *w, const int64_t *shape, int rank);

/* Puts a new reference on the run's clean-up list and returns it, now borrowed. NULL: tt_python_error. */
PyObject *tt_keep(Walker *w, PyObject *new_reference);

static inline bool tt_is_value(Term t) { return t.kind == TERM_VALUE; }
static inline bool tt_is_none(Term t) { return t.kind == TERM_PYTHON && t.object == Py_None; }
static inline bool tt_is_tile_term(Term t) { return t.kind == TERM_VALUE && tt_is_tile(t.value->type); }
bool tt_is_number(Term t); /* PYTHON int, float or bool: a weak scalar */
/* Shape of a VALUE; rank 0 for scalars. */
int tt_term_shape(Term t, const int64_t **shape);

/* The compile-time object behind a term (borrowed), looking through constants and into tuples; NULL for run-time. */
PyObject *tt_term_python(Walker *w, Term t);
/* Compile-time readers: false when the term is not such a thing. */
bool tt_term_int(Walker *w, Term t, int64_t *out); /* Python int (or bool) that fits; out of range raises */
bool tt_term_bool(Walker *w, Term t, bool *out);
const char *tt_term_string(Walker *w, Term t); /* UTF-8, lives as long as the run; NULL when no str */
const Dtype *tt_term_dtype(Walker *w, Term t);
/* Items of a tuple or list of Terms (a Python list counts); false when it is neither. */
bool tt_term_items(Walker *w, Term t, const Term **items, int *count);

/* A VALUE of any numeric term: compile-time numbers get their own dtype (int32, uint32, int64, uint64 by size; fp32, or
 * fp64 when too large; int1 for bool). Others raise, saying that a run-time value is needed. */
Term tt_term_value(Walker *w, Term t);
/* The same with a given dtype: the number rounded or wrapped to it; also for VALUE terms of that dtype already. */
Term tt_number_value(Walker *w, Term number, const Dtype *dtype);
const Dtype *tt_number_dtype(Walker *w, Term number); /* the dtype that tt_term_value gives a number */

/* Text for messages, in the arena: "fp32[128, 64]", "int32", "pointer<fp16>[64]", "the constexpr 5", "None", "a tuple of
 * 2", "the module math", ... */
const char *tt_describe(Walker *w, Term t);

/* ---- arguments of the builtin being called: as above, but anything else raises an error that names the parameter -- */

int64_t tt_arg_int(Walker *w, const Term *args, int index);
int64_t tt_arg_int_or(Walker *w, const Term *args, int index, int64_t if_none);
bool tt_arg_bool(Walker *w, const Term *args, int index);
const char *tt_arg_string(Walker *w, const Term *args, int index); /* None: NULL */
const Dtype *tt_arg_dtype(Walker *w, const Term *args, int index); /* None: NULL */
/* Shape or list of ints: a tuple, a list, or one int; returns the rank. At most TT_MAX_RANK. */
int tt_arg_ints(Walker *w, const Term *args, int index, int64_t *out);
Term tt_arg_value(Walker *w, const Term *args, int index); /* tt_term_value */
const char *tt_parameter_name(const Walker *w, int index);
_Noreturn void tt_arg_error(Walker *w, const Term *args, int index,
                            const char *expected); /* "`end` of arange must be <expected>, not ..." */

/* ---- errors at the current location ------------------------------------------------------------------------------- */

_Noreturn void tt_fail(Walker *w, const char *format, ...) TT_PRINTF(2, 3);
/* None stands where there should be a value: `what` is the operation, as the user wrote it. */
const char *tt_none_remedy(Term t); /* NULL of what is not None */
_Noreturn void tt_none_operand(Walker *w, const char *what);
_Noreturn void tt_fail_with_remedy(Walker *w, const char *remedy, const char *format, ...) TT_PRINTF(3, 4);
/* The closest of the names in a list or dict, for "did you mean", or NULL. */
const char *tt_closest(Walker *w, const char *name, PyObject *candidates);
/* A Python exception is set: becomes a user error at the current location that quotes it. What tt_forgive leaves speaks
 * for itself. */
_Noreturn void tt_python_error(Walker *w);
/* Forgets the pending exception, if any, of an object that was only looked at; fails with one that is not its own. */
void tt_look_away(Walker *w);
static inline const Loc *tt_here(const Walker *w) { return w->builder.loc; }

/* ---- calls.c -------------------------------------------------------------------------------------------------------- */

/* Calls anything callable with positional Terms: jit function, builtin, method, Python function of constants. */
Term tt_call(Walker *w, Term function, const Term *args, int count);
/* The same with the operations going to the end of `region`: the combine function of reduce and scan. The caller ends
 * the region with its yield. Results: the items when it returned a tuple, else the one term. */
int tt_call_in_region(Walker *w, Region *region, Term function, const Term *args, int count, Term *results,
                      int max_results);
/* triton.language.<name>, borrowed. */
PyObject *tt_language_object(Walker *w, const char *name);

/* ---- what language implements (semantic*.c) -------------------------------------------------------------------------
 * The walker evaluates operators on PYTHON operands itself; here at least one operand is something else. */
extern const char *const tt_operator_texts[]; /* "+", "<<", "and", ...: walker */

Term tt_semantic_binary(Walker *w, Operator op, Term a,
                        Term b); /* arithmetic, bitwise, comparisons, logical */
/* The same where integers may wrap around in a debug compilation too. */
Term tt_semantic_wrapping(Walker *w, Operator op, Term a, Term b);
Term tt_semantic_unary(Walker *w, Operator op, Term a);
Term tt_semantic_cast(Walker *w, Term t, const Dtype *dtype);
/* x[index, ..]: each index a SLICE, None, Ellipsis, a compile-time int or a VALUE. `t` is a VALUE. */
Term tt_semantic_subscript(Walker *w, Term t, const Term *indices, int count);
/* t.name of a VALUE or BLOCK_POINTER; methods come back as METHOD terms. Unknown names raise, with a suggestion. */
Term tt_semantic_attribute(Walker *w, Term t, PyObject *name);
/* Scalar i1 for if, while and conditional expressions; a tile is an error that suggests tl.where. */
Value *tt_semantic_truth(Walker *w, Term t);

/* A builtin: one Term a parameter of the Python stub, in its order, defaults filled in. Rows are in builtins.def:
 * BUILTIN(name, function), name as in the stub's __triton_builtin__. No rows for range, static_range and constexpr,
 * which are the walker's. */
typedef Term BuiltinFunction(Walker *w, Term *args);
