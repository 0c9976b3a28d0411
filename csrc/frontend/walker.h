/* walker.h: the walker's own state, and what its files offer each other. Language code includes term.h only. */
#pragma once
#include "frontend/term.h"

typedef enum NodeKind {
#define NODE(name) NODE_##name,
#include "frontend/nodes.def"
    NODE_KINDS,
} NodeKind;

typedef enum FieldName {
#define FIELD(name) FIELD_##name,
#include "frontend/fields.def"
    FIELD_NAMES,
} FieldName;

/* What an object is to the compiler, by the __triton_kind__ of its type. */
typedef enum ObjectKind {
    OBJECT_OTHER,
    OBJECT_JIT,
    OBJECT_DTYPE,
    OBJECT_POINTER_TYPE,
    OBJECT_BLOCK_TYPE,
    OBJECT_CONSTEXPR,
    OBJECT_CONSTEXPR_FUNCTION,
    OBJECT_TILE, /* of the interpreter: see trace.c */
    OBJECT_WINDOW,
} ObjectKind;

/* ---- names and scopes ------------------------------------------------------------------------------------------- */

/* Why a name has no value at some place: it was assigned in one branch only, or as two types that cannot be one. */
typedef enum UndefinedKind {
    UNDEFINED_ONE_BRANCH,    /* assigned (a) on one side of an `if` only */
    UNDEFINED_LOOP_ONLY,     /* assigned (a) in a loop that may not run; it can be taken out of it */
    UNDEFINED_MISMATCH,      /* a on one side of an `if`, b on the other */
    UNDEFINED_LOOP_MISMATCH, /* a before the loop, b after an iteration */
    UNDEFINED_DELETED,
} UndefinedKind;
typedef struct Undefined {
    UndefinedKind kind;
    const Loc *loc; /* of the if or loop */
    Term a, b;
    const Loc *a_loc, *b_loc;
    Op *loop;   /* LOOP_ONLY */
    Term taken; /* LOOP_ONLY: what the name is after the loop, once somebody read it */
} Undefined;

/* The value a name has when a loop's iteration begins. Shared by every copy of the binding until it is assigned. */
typedef struct LoopEntry {
    bool read;
    struct LoopEntry *outer; /* of the enclosing loop, when the name was not assigned in between */
} LoopEntry;

typedef struct Binding {
    Term term;
    const Loc *loc; /* where it was assigned */
    LoopEntry *entry;
} Binding;

/* Slots that every scope has, for the exits that statements may have taken (see flow.c), before those of names. */
enum { SLOT_RETURNED, SLOT_BROKE, SLOT_CONTINUED, SLOT_RESULT, FIRST_NAME_SLOT };

/* The bindings at one point of the walk; a slot past the end is unbound. */
typedef struct Bindings {
    Binding *data;
    int count, capacity;
} Bindings;

typedef struct Scope {
    Map slots;                   /* interned name -> slot */
    Map constexprs;              /* names that `name: tl.constexpr` alone has declared */
    TT_VECTOR(PyObject *) names; /* of the slots; NULL for the first ones */
    Bindings now;
} Scope;

/* ---- functions --------------------------------------------------------------------------------------------------- */

typedef enum ParameterKind { /* the numbers that KernelParam.kind has */
                             PARAMETER_POSITIONAL,
                             PARAMETER_ANY,
                             PARAMETER_VARIADIC, /* *args */
                             PARAMETER_KEYWORD,
                             PARAMETER_META, /* **kwargs */
} ParameterKind;

typedef struct Parameter {
    PyObject *name;
    PyObject *fallback; /* default value or NULL */
    ParameterKind kind;
    bool is_constexpr;
} Parameter;

typedef struct Signature {
    const char *name; /* of the function, for messages */
    Parameter *parameters;
    int count;
    bool is_of_libdevice; /* whose parameters the public API calls arg0, arg1, ... */
} Signature;
/* Sets that. */
void tt_note_module(Walker *w, PyObject *function, Signature *signature);

typedef struct FunctionInfo {
    PyObject *object; /* the JITFunction */
    Signature signature;
    PyObject *statements; /* list */
    PyObject *node;
    PyObject *globals;
    PyObject *closure_names, *closure_cells; /* tuples, or NULL without a closure */
    Map locals;                              /* interned names that Python takes for local variables */
    const char *file;
    int column_offset;
    bool noinline, has_walrus;
    const Loc *loc; /* of the def, for notes */
} FunctionInfo;

typedef struct Frame {
    struct Frame *caller;
    FunctionInfo *info;
    const Loc *call_site;
    const Term *args; /* of the parameters */
    Scope scope;
    int loop_depth;
    struct Loop *loop; /* the innermost that is being built, or NULL */
} Frame;

typedef struct Arguments {
    Term *items;
    int count;
    PyObject **names; /* keywords */
    Term *named;
    int named_count;
} Arguments;

typedef struct WalkerState {
    Frame *frame;
    PyObject *fields[FIELD_NAMES];
    Map node_kinds, object_kinds; /* by type object */
    Map callees, functions;       /* by object */
    Map specialisations;          /* noinline functions by signature text */
    Map assigned;                 /* names assigned in a loop, by its node */
    Map dtypes, dtype_objects, pointers;
    TT_VECTOR(PyObject *) kept;
    PyObject *builtins;               /* Python's, a dict */
    PyObject *language;               /* triton.language or NULL */
    PyObject *last_callee;            /* of the call that ended last, borrowed */
    PyObject *used_names, *own_names; /* lists of the request or NULL */
    bool had_effects;                 /* see FrontendRequest */
    Map reported;
    StackUse stack;
    void (*breathe)(void);               /* of the request */
    unsigned steps;                      /* of the walk: Python's signals are handled now and then */
    int inline_depth, inlined, unrolled; /* calls within calls, calls and iterations so far */
} WalkerState;

/* ---- frontend.c --------------------------------------------------------------------------------------------------- */

/* A run from its beginning to its end: `function` fills the walker's module, which is verified. Every Python object
 * that the walk held is let go of, also when it raises. */
typedef void WalkFunction(Walker *w, void *context);
Module *tt_run_walk(Arena *arena, FrontendRequest *request, WalkFunction *function, void *context);

/* ---- ast.c -------------------------------------------------------------------------------------------------------- */

NodeKind tt_node_kind(Walker *w, PyObject *node);
ObjectKind tt_object_kind(Walker *w, PyObject *object);
/* A child or attribute of an ast node; borrowed, the tree holds it. */
PyObject *tt_field(Walker *w, PyObject *node, FieldName name);
bool tt_is_field_set(Walker *w, PyObject *node, FieldName name); /* present and not None */
/* An attribute of any object, kept; NULL without an exception when there is none. */
PyObject *tt_attribute_or_null(Walker *w, PyObject *object, FieldName name);
PyObject *tt_attribute(Walker *w, PyObject *object, FieldName name);
int64_t tt_int_attribute(Walker *w, PyObject *object, FieldName name);
int tt_list_size(Walker *w, PyObject *list);
PyObject *tt_list_item(Walker *w, PyObject *list, int index); /* borrowed */
const Loc *tt_loc(Walker *w, PyObject *node);
void tt_at(Walker *w, PyObject *node); /* builder.loc = tt_loc */
_Noreturn void tt_refuse_node(Walker *w, PyObject *node);
const char *tt_utf8(Walker *w, PyObject *text); /* of a str; "?" when it has no UTF-8 form */
void tt_check_depth(Walker *w);                 /* an error before the C stack ends */
void tt_breathe_in_walk(const Walker *w);       /* see FrontendRequest.breathe */

/* ---- names.c ------------------------------------------------------------------------------------------------------ */

Term tt_load_name(Walker *w, PyObject *node, PyObject *name);
void tt_store_name(Walker *w, PyObject *name, Term term);
int tt_slot(Walker *w, PyObject *name);      /* of a name, made when new */
int tt_find_slot(Walker *w, PyObject *name); /* -1 when the function has not assigned it yet */
Binding *tt_binding(Walker *w, int slot);
void tt_bind_slot(Walker *w, int slot, Term term);
void tt_init_scope(Walker *w, Scope *scope);
Bindings tt_copy_bindings(Walker *w);
/* The error that says why a name has no value here. */
_Noreturn void tt_raise_undefined(Walker *w, const char *name, const Undefined *why);
/* A module of triton itself: no program gives its names to something else. */
bool tt_is_of_this_package(Walker *w, PyObject *object);
void tt_report_name(Walker *w, PyObject *space, PyObject *name, PyObject *value);

/* ---- constexpr.c -------------------------------------------------------------------------------------------------- */

Term tt_binary(Walker *w, Operator op, Term a, Term b); /* of any terms */
Term tt_unary(Walker *w, Operator op, Term a);
/* 1 or 0 when the truth of the term is known at compile time, else -1. */
int tt_known_truth(Walker *w, Term t);
Value *tt_condition(Walker *w, Term t);
/* An int, string or list that would only eat memory? */
bool tt_is_too_large(Walker *w, PyObject *object);
enum { MOST_TUPLE_ITEMS = 1 << 16 };
/* Numbers, in tuples too, become values: what plain assignment and return do. */
Term tt_decay(Walker *w, Term t);
/* The same for what a target takes: names that are declared `name: tl.constexpr` keep compile-time values. */
Term tt_decay_for(Walker *w, PyObject *target, Term value);
bool tt_same_term(Walker *w, Term a, Term b);
bool tt_has_values(Term t); /* is any part a run-time value? */

/* ---- walk_expr.c, displays.c ---------------------------------------------------------------------------------------- */

Term tt_walk_expr(Walker *w, PyObject *node);
Term tt_walk_operation(Walker *w, PyObject *node, Term left, PyObject *right); /* BinOp, AugAssign */
Term tt_walk_attribute_of(Walker *w, Term t, PyObject *name);
Term tt_walk_display(Walker *w, PyObject *node); /* tuple, list */
Term tt_walk_dict(Walker *w, PyObject *node);
Term tt_walk_comprehension(Walker *w, PyObject *node); /* of compile-time iterables */
Term tt_walk_format(Walker *w, PyObject *node);        /* f-string */
/* With *starred ones expanded. The first may have been walked: those that `into` has. */
void tt_walk_elements(Walker *w, PyObject *list, Arguments *into);
void tt_assign(Walker *w, PyObject *target, Term term); /* walk_stmt.c: binds or unpacks */
/* The items that a compile-time iterable gives; raises when it is none. */
void tt_iterate(Walker *w, Term t, const Term **items, int *count);

/* ---- flow.c ------------------------------------------------------------------------------------------------------- */

/* How control may leave a statement. */
enum { FALLS = 1, RETURNS = 2, BREAKS = 4, CONTINUES = 8, ABSORBED = 16 };
typedef unsigned Flow;

/* Statements in a row: those of a block, or the iterations of an unrolled loop. */
typedef struct Sequence {
    Flow (*walk)(Walker *w, struct Sequence *sequence, int index, Flow tail);
    int count;
    PyObject *statements;
    PyObject *target; /* unrolled loop */
    const Term *items;
} Sequence;

/* Walks the statements from `start` on. `tail`: the exits that need no record, because what follows the sequence is
 * what they lead to; FALLS in it: nothing that follows reads a name. */
Flow tt_walk_sequence(Walker *w, Sequence *sequence, int start, Flow tail);
Flow tt_walk_block(Walker *w, PyObject *statements, Flow tail);
/* Goes on after a statement that may have left: wraps the rest in an `if` when it is not certain. */
Flow tt_walk_rest(Walker *w, Sequence *sequence, int next, Flow so_far, Flow tail);
/* if (!skip) { the rest of the sequence }, where skipping it leads to the exits `skipped`. */
Flow tt_walk_unless(Walker *w, Value *skip, Flow skipped, Sequence *sequence, int next, Flow tail);
Flow tt_walk_statement(Walker *w, Sequence *sequence, int index, Flow tail); /* walk_stmt.c */
Value *tt_exit_taken(Walker *w, Flow exits); /* i1: one of these exits was taken */

/* ---- join.c ------------------------------------------------------------------------------------------------------- */

typedef struct Side {
    Region *region;
    Bindings bindings;
    Flow flow;
} Side;
typedef struct Join {
    Op *op; /* if */
    Side sides[2];
    TT_VECTOR(Value *) yields[2];
    const Loc *loc;
    bool is_lenient; /* a name that one side assigns is defined: only code that may read it can follow */
} Join;
/* Makes one set of bindings from those of the two sides. */
void tt_join_bindings(Walker *w, Join *join, Flow tail);
/* One term from one a side: false when they cannot be one. */
bool tt_join_terms(Walker *w, Join *join, Term a, Term b, Term *out);
/* A number as a dtype that the other side of a join has already; false when it would not be the same number. */
bool tt_adopt(Walker *w, Term number, const Dtype *dtype, Term *out);
void tt_flatten(Walker *w, Term t, Value **values, int *count); /* the values in a term; values may be NULL */
Term tt_rebuild(Walker *w, Term shape, Value *const *values,
                int *next); /* with other values in their places */
int tt_count_values(Term t);

/* ---- branches.c, loops.c -------------------------------------------------------------------------------------------- */

Flow tt_walk_if(Walker *w, PyObject *node, Sequence *sequence, int index, Flow tail);
Term tt_walk_if_expr(Walker *w, PyObject *node);
Term tt_walk_bool_op(Walker *w, PyObject *node);
Term tt_walk_compare(Walker *w, PyObject *node);
Flow tt_walk_for(Walker *w, PyObject *node, Flow tail);
Flow tt_walk_while(Walker *w, PyObject *node, Flow tail);
/* Start, stop and step as values of the dtype that the index of a loop over them has. */
Term tt_range_bounds(Walker *w, const Term bounds[3]);

/* ---- assigned.c --------------------------------------------------------------------------------------------------- */

typedef TT_VECTOR(PyObject *) AssignedNames;
/* Names that a `for` or `while` statement assigns, its target included. */
const AssignedNames *tt_assigned_names(Walker *w, PyObject *loop);
bool tt_has_walrus(Walker *w, PyObject *node); /* does an expression assign a name? */

/* ---- carried.c ----------------------------------------------------------------------------------------------------- */

typedef struct Carried {
    int slot;
    Binding before, after;
    Term entry; /* of the iteration: made of the region's arguments */
    LoopEntry *state;
    int first, count; /* of its values among Loop.inits */
    bool is_dropped;
} Carried;

typedef struct Loop {
    struct Loop *outer; /* that is being built, in this function */
    Op *op;
    const Loc *loc;
    bool has_else;
    const AssignedNames *names;
    TT_VECTOR(Carried) carried;
    TT_VECTOR(Value *) inits;
    Value **args, **test_args;                  /* the carried arguments of the body, and of a while's test */
    Value **yields;                             /* what the body hands on in place of args */
    TT_VECTOR(Value *) exit_inits, exit_yields; /* flags and result of exits, carried behind the names */
    Flow exits;                                 /* BREAKS, RETURNS: taken somewhere in the body at run time */
    Binding result;                             /* of a return in the body */
    Term broke;                                 /* after a loop with an `else`: was it left by `break`? */
    Bindings before;
    Binding outer_exits[SLOT_CONTINUED + 1];
} Loop;

void tt_begin_carried(Walker *w, Loop *loop, PyObject *node); /* where the loop will be built */
/* Adds the arguments to a region and binds the names to them. Call it once a region, the body's last. */
Value **tt_bind_carried(Walker *w, Loop *loop, Region *region);
void tt_end_carried(Walker *w, Loop *loop, Flow flow);   /* at the end of the body: fills yields */
void tt_collect_exits(Walker *w, Loop *loop, Flow flow); /* fills exits, exit_inits, exit_yields */
/* Binds names and exits to the results: those of the carried values, then those of the exits. */
void tt_bind_results(Walker *w, Loop *loop, Value *const *results);
/* Gives a name that only a loop assigned, and that is wanted here after it, its last value: the loop carries it from now
 * on. It is unspecified if the loop did not run. False where that cannot be, and under TRITON_STRICT=1. */
bool tt_take_out_of_loop(Walker *w, PyObject *name, Binding *binding);

/* ---- calls.c, jit.c, host.c ------------------------------------------------------------------------------------------ */

Term tt_walk_call(Walker *w, PyObject *node);
Term tt_call_with(Walker *w, Term function, Arguments *args);
/* What a call's function is; range and static_range matter to `for`. */
typedef enum CalleeKind {
    CALLEE_JIT,
    CALLEE_BUILTIN,
    CALLEE_RANGE, /* Python's range or tl.range */
    CALLEE_STATIC_RANGE,
    CALLEE_CONSTEXPR,
    CALLEE_NAMED_TUPLE,
    CALLEE_AGGREGATE, /* a named tuple that its own __init__ makes */
    CALLEE_MARKED, /* a function of others with `__triton_builtin__ = True`: Python that takes tl.constexpr */
    CALLEE_REPLACE,      /* tl.aggregate_replace */
    CALLEE_HOST_SPECIAL, /* a Python builtin that has a meaning for run-time values */
    CALLEE_HOST,
} CalleeKind;
typedef Term HostSpecial(Walker *w, PyObject *function, const Arguments *args);
typedef struct Callee {
    CalleeKind kind;
    PyObject *object;
    Signature signature;       /* builtin, range, named tuple */
    BuiltinFunction *function; /* builtin */
    const BuiltinCall *call;
    HostSpecial *special;
} Callee;
/* The JITFunction that an object is or wraps (an autotuner, say); NULL when there is none. */
PyObject *tt_find_jit(Walker *w, PyObject *object);
Callee *tt_callee(Walker *w, PyObject *object);
HostSpecial *tt_find_host_special(Walker *w, PyObject *object); /* NULL when it is none */
Term tt_call_host(Walker *w, PyObject *function, const Arguments *args);
/* trace.c: an operator, an attribute ("."), an index ("[]"), a condition ("if") and such by its text; and a place in a
 * program that Python tells of. */
Term tt_operate(Walker *w, const char *text, const Term *args, int count);
Loc *tt_read_place(Walker *w, PyObject *place);
/* aggregates.c: tuples with named fields */
/* A call of a Python function, which gets stand-ins for run-time values; compile-time ones as tl.constexpr, if `marked`. */
Term tt_call_on_stand_ins(Walker *w, PyObject *function, const Arguments *args, bool marked);
Term tt_replace_fields(Walker *w, const Arguments *args);
bool tt_is_aggregate(Walker *w, Term t);
/* Is field `i` of an aggregate annotated tl.constexpr? False for other tuples. */
bool tt_is_constexpr_field(Walker *w, Term t, int i);
/* The tuple with what is known of its compile-time fields, in place; one that only the kernel knows raises. */
Term tt_with_known_fields(Walker *w, Term t);
PyObject *tt_class_tuple(Walker *w, Term t, PyObject *items); /* of the class that t has, if it has one */
Term tt_tuple_attribute(Walker *w, Term t, PyObject *name);
/* A method of the class that is compiled, or run on what is known at compile time. */
bool tt_find_method(Walker *w, Term t, const char *name, Term *method);
/* An operator that the class of an operand defines. */
bool tt_own_binary(Walker *w, Operator op, Term a, Term b, Term *result);
bool tt_own_unary(Walker *w, Operator op, Term a, Term *result);
void tt_collect_arguments(Walker *w, PyObject *call, Arguments *args);
/* Arguments to parameters, one term each; those without an argument get their default. */
void tt_bind_arguments(Walker *w, const Signature *signature, const Arguments *args, Term *out);
FunctionInfo *tt_function_info(Walker *w, PyObject *jit_function);
const char *tt_function_name(Walker *w, const char *name); /* with characters that the IR and linkers take */
Term tt_call_jit(Walker *w, PyObject *function, Arguments *args);
/* Walks the body in a new frame with the parameters bound; the result is what it returned. */
Term tt_walk_function(Walker *w, FunctionInfo *info, const Term *args, const Loc *call_site);
void tt_build_return(Walker *w, Function *function,
                     Term result); /* ends a function with the values in a term */
