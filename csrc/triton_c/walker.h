/* walker.h: from the tree to tile IR in SSA form. Internal to triton_c/.
 *
 * A variable has one type and one shape for its life, so SSA construction needs no more than its current value: where two
 * sides of an `if` meet, values that differ become results, and what a loop assigns is carried. Functions are inlined: a
 * call walks the body in a new Frame. */
#pragma once
#include "triton_c/syntax.h"

/* What an expression gives. Compile-time values are constants of the IR. */
typedef struct Operand {
    Value *value; /* NULL: void */
    const Dtype *dtype;
    bool
        is_weak; /* a float constant without suffix, an f64 that takes the type of what it meets; float alone */
} Operand;

typedef struct Variable {
    const char *name; /* NULL: none that a program knows */
    const Dtype *dtype;
    Shape shape;
    bool is_const;
    Value *value; /* now; NULL before it has one */
    const Loc *loc;
} Variable;

/* How control may leave a statement. ABSORBED: what follows it was walked with it. */
enum { FALLS = 1, RETURNS = 2, BREAKS = 4, CONTINUES = 8, ABSORBED = 16 };
typedef unsigned Flow;

enum { SLOT_RETURNED, SLOT_RESULT, FIRST_VARIABLE };
typedef struct Frame {
    struct Frame *caller;
    const CFunction *function;
    const Loc *call_site;
    TT_VECTOR(Variable) slots; /* by age: a scope ends by cutting them off */
    int broke, continued;      /* slots of the innermost loop; 0: no loop */
    int first_free;  /* slots before it are older than the predicate, and change where it holds only */
    int predicates;  /* open in this function */
    int outside;     /* of these, around the innermost loop */
    bool has_result; /* the type of SLOT_RESULT is known */
} Frame;

typedef struct CWalker {
    Arena *arena;
    Module *module;
    Builder builder;
    Map pointers;
    const CProgram *program;
    const CRequest *request;
    TT_VECTOR(Variable) globals;
    Frame *frame;
    Value *mask;         /* int1, of any shape: the elements that the statements count for; NULL: all */
    const Shape *wanted; /* of the variable whose value is being walked */
    int64_t extents[3];  /* of global ranges */
    const Loc *extent_locs[3];
    StackUse stack;
    int depth, steps; /* calls within calls; expressions so far */
} CWalker;

/* ---- messages.c ---------------------------------------------------------------------------------------------------- */

const Loc *tt_c_loc(CWalker *w, const Loc *loc); /* in the current call */
void tt_c_at(CWalker *w, const Node *node);      /* where operations and errors are from now on */
_Noreturn void tt_c_fail(CWalker *w, const char *remedy, const char *format, ...) TT_PRINTF(3, 4);
const char *tt_c_dtype_name(CWalker *w, const Dtype *dtype);
const char *tt_c_describe(CWalker *w, Operand x); /* "float[64, 32]", "the constant 5" */
const char *tt_c_describe_type(CWalker *w, const Dtype *dtype, const Shape *shape);
extern const char *const tt_c_operator_texts[];
const char *tt_c_closest(const char *name, const char *const *names, int count); /* or NULL */

/* ---- convert.c: C's conversions ---------------------------------------------------------------------------------------- */

static inline Typed tt_c_typed(Operand x) { return (Typed){x.value, x.dtype}; }
static inline Operand tt_c_operand(Typed x) { return (Operand){x.value, x.dtype, false}; }
static inline Shape tt_c_shape(Operand x) { return tt_shape_of_type(x.value->type); }
Operand tt_c_int(CWalker *w, const Dtype *dtype, int64_t value);
/* Not void, and no string; a weak constant becomes a float. */
Operand tt_c_settle(CWalker *w, const char *what, Operand x);
/* As a cast does, to any type there is a way to; what has none is an error. */
Operand tt_c_cast(CWalker *w, Operand x, const Dtype *dtype);
/* As an assignment does: between numbers, and of a pointer to a variable of its type. `what` names the variable. */
Operand tt_c_convert(CWalker *w, const char *what, Operand x, const Dtype *dtype);
Operand tt_c_broadcast(CWalker *w, const char *what, Operand x, const Shape *shape);
/* The integer promotions: what is narrower than int becomes int; fp8 becomes float. */
Operand tt_c_promote(CWalker *w, Operand x);
/* The usual arithmetic conversions, and broadcasting. Both are weak if both were. */
void tt_c_unify(CWalker *w, const char *what, Operand *x, Operand *y);
void tt_c_broadcast_together(CWalker *w, const char *what, Operand *operands, int count);
Value *tt_c_condition(CWalker *w, Operand x); /* int1 scalar */
Operand tt_c_truth(CWalker *w, Operand x);
/* Compile-time integers. */
bool tt_c_known_int(Operand x, int64_t *out);
int64_t tt_c_extent(CWalker *w, const Node *node);
Shape tt_c_extents(CWalker *w, const Nodes *extents);

/* ---- scope.c ------------------------------------------------------------------------------------------------------------ */

Variable *tt_c_find_variable(CWalker *w, const char *name); /* of the function or the file; NULL */
int tt_c_find_slot(const Frame *frame, const char *name);   /* -1 */
int tt_c_add_slot(CWalker *w, const char *name, const Dtype *dtype, const Shape *shape, Value *value);
void tt_c_end_scope(CWalker *w, int slots);
/* Gives a variable a value of its type and shape: under a predicate, where that holds. */
void tt_c_assign(CWalker *w, Variable *variable, Operand x);

typedef struct Side {
    Region *region;
    Value **values; /* of the slots there were before */
    Flow flow;
} Side;
typedef struct Join {
    Op *op; /* if */
    int slots;
    Value **before;
    Side sides[2];
} Join;
/* Builds an `if`. Each side is begun and ended in turn; the second one may be left out. */
Join tt_c_begin_if(CWalker *w, Value *condition);
void tt_c_begin_side(CWalker *w, Join *join, int side);
void tt_c_end_side(CWalker *w, Join *join, int side, Flow flow);
/* Slots get the values that they have after either side; `results`: others that each side gives, replaced by the `if`'s. */
void tt_c_end_if(CWalker *w, Join *join, Value **results[2], int count);
void tt_c_move_out(Op *op); /* the operations of its regions, in front of it; the `if` goes */
bool tt_c_is_harmless(const Region *region);

/* What a subtree does, without looking into functions. */
typedef struct Uses {
    bool assigns, reads_memory, calls, breaks, returns;
} Uses;
Uses tt_c_uses(const Node *node);
/* The slots that a subtree assigns, oldest first. */
typedef TT_VECTOR(int) Slots;
void tt_c_assigned_slots(CWalker *w, const Node *node, Slots *slots);

/* ---- statements.c, loops.c ------------------------------------------------------------------------------------------------ */

Flow tt_c_walk_statements(CWalker *w, const Nodes *statements, int first);
Flow tt_c_walk_body(CWalker *w, Node *statement); /* in a scope of its own */
Flow tt_c_walk_for(CWalker *w, const Node *node);
Flow tt_c_walk_while(CWalker *w, const Node *node);
Value *tt_c_exit_taken(CWalker *w, Flow exits);

/* ---- expressions.c, conditionals.c, memory.c, calls.c, builtins.c ---------------------------------------------------------------------------- */

Operand tt_c_walk(CWalker *w, const Node *node);
Operand tt_c_binary(CWalker *w, Operator op, Operand x, Operand y);
Operand tt_c_logical(CWalker *w, Operator op, Operand x, Operand y); /* && and ||, of all elements */
Operand tt_c_walk_conditional(CWalker *w, const Node *node);
Operand tt_c_walk_logical(CWalker *w, const Node *node);
Operand tt_c_load(CWalker *w, Operand pointer);
void tt_c_store(CWalker *w, Operand pointer, Operand value);
Operand tt_c_atomic(CWalker *w, const char *name, Operand *arguments);
Operand tt_c_walk_call(CWalker *w, const Node *node);
/* Walks the body with the parameters bound, and gives what it returned. */
Operand tt_c_inline(CWalker *w, const CFunction *function, const Operand *arguments, const Loc *call_site);

typedef struct Call {
    const Node *node;
    const char *name;
    Operand *arguments;
    int count;
} Call;
typedef Operand BuiltinFunction(CWalker *w, Call *call);
typedef struct Builtin {
    const char *name;
    BuiltinFunction *function;
    int least, most;    /* arguments */
    bool is_arithmetic; /* depends on its arguments only */
} Builtin;
const Builtin *tt_c_builtin(const char *name); /* NULL */
const char *const *tt_c_builtin_names(CWalker *w, int *count);
/* A compile-time integer among the arguments. */
int64_t tt_c_known_argument(CWalker *w, const Call *call, int index, const char *what);
BuiltinFunction tt_c_builtin_global_range, tt_c_builtin_program_id, tt_c_builtin_dot, tt_c_builtin_trans,
    tt_c_builtin_reduce, tt_c_builtin_reshape;
