/* The tile IR: SSA values of scalar and tile types, operations with regions, one block a region.
 * Everything is allocated in the module's arena and freed with it. Types are interned: compare them by pointer. */
#pragma once
#include "layout/layout.h"

/* ---- types (types.c) ---------------------------------------------------------------------------------------------- */

/* clang-format off */
typedef enum TypeKind {
    TT_I1, TT_I8, TT_I16, TT_I32, TT_I64, /* signless */
    TT_F8E4M3, TT_F8E5M2, TT_F8E4M3B15, TT_F8E4M3B8, TT_F8E5M2B16, TT_F16, TT_BF16, TT_F32, TT_F64,
    TT_PTR,
    TT_TILE,
    TT_BUFFER, /* of shared memory: slots, each of which holds a tile's elements in the value's layout */
    TT_VOID,   /* the frontend's: no value */
    TT_TYPE_KINDS,
} TypeKind;
/* clang-format on */

typedef struct Type {
    TypeKind kind;
    int space;                  /* TT_PTR: memory space, 1 = global */
    int slots;                  /* TT_BUFFER */
    int rank;                   /* TT_TILE, TT_BUFFER: 1 .. TT_MAX_RANK */
    const struct Type *element; /* TT_PTR: pointee; TT_TILE: element (scalar or pointer); TT_BUFFER: scalar */
    int64_t count;              /* TT_TILE: number of elements; TT_BUFFER: of a slot */
    int64_t shape[];            /* TT_TILE: logical extents, any positive number each; TT_BUFFER: of a slot */
} Type;

typedef struct Module Module;
typedef struct Function Function;
typedef struct Op Op;
typedef struct Value Value;
typedef struct Region Region;

const Type *tt_scalar_type(Module *module, TypeKind kind);
const Type *tt_ptr_type(Module *module, const Type *pointee, int space);
const Type *tt_tile_type(Module *module, const Type *element, const int64_t *shape, int rank);
/* `slots` tiles of this type in shared memory. */
const Type *tt_buffer_type(Module *module, const Type *tile, int slots);
/* The tile that a slot holds. */
const Type *tt_slot_type(Module *module, const Type *buffer);
/* `type` with another element: a scalar type stays scalar, a tile keeps its shape. */
const Type *tt_with_element(Module *module, const Type *type, const Type *element);
/* Tile of `shape`, or the element itself when rank is 0. */
const Type *tt_shaped_type(Module *module, const Type *element, const int64_t *shape, int rank);

static inline const Type *tt_element(const Type *type)
{
    return type->kind == TT_TILE || type->kind == TT_BUFFER ? type->element : type;
}
static inline bool tt_is_tile(const Type *type) { return type->kind == TT_TILE; }
static inline bool tt_is_buffer(const Type *type) { return type->kind == TT_BUFFER; }
static inline bool tt_is_int(const Type *type) { return tt_element(type)->kind <= TT_I64; }
static inline bool tt_is_float(const Type *type)
{
    TypeKind k = tt_element(type)->kind;
    return k >= TT_F8E4M3 && k <= TT_F64;
}
static inline bool tt_is_fp8(const Type *type)
{
    TypeKind k = tt_element(type)->kind;
    return k >= TT_F8E4M3 && k <= TT_F8E5M2B16;
}
static inline bool tt_is_ptr(const Type *type) { return tt_element(type)->kind == TT_PTR; }
static inline bool tt_is_bool(const Type *type) { return tt_element(type)->kind == TT_I1; }
int tt_bit_width(const Type *type);                   /* of the element: 1 for i1, 64 for pointers */
int tt_byte_width(const Type *type);                  /* of the element in memory: 1 for i1 */
bool tt_same_shape(const Type *a, const Type *b);     /* scalars have the empty shape */
const FloatFormat *tt_float_format(const Type *type); /* of the element; NULL for f64 and non-floats */
double tt_round_to(const Type *type, double value);   /* to the nearest value of the float element */
const char *tt_type_name(TypeKind kind);              /* "i32", "f8e4m3", ... */

/* ---- layouts of tiles (layouts.c) ------------------------------------------------------------------------------------ */

/* The one of the module that is equal to `layout`: compare by pointer. */
const LinearLayout *tt_intern_layout(Module *module, const LinearLayout *layout);
void tt_print_layout(Text *text, const LinearLayout *layout);
int tt_layout_input_named(
    const char *name); /* "registers", "lanes", ...: a LayoutInput; -1 when there is none */
/* The layout without places of a tile's padded shape: extents rounded up to powers of two. */
LinearLayout tt_padded_layout(const Type *type);
bool tt_layout_fits(const LinearLayout *layout, const Type *type); /* is it one of the padded shape? */

/* ---- attributes (attrs.c) ------------------------------------------------------------------------------------------ */

typedef enum AttrKey {
#define ATTR(name, kind) ATTR_##name,
#include "ir/attrs.def"
    TT_ATTR_KEYS,
} AttrKey;
typedef enum AttrKind { TT_ATTR_INT, TT_ATTR_INTS, TT_ATTR_STRING, TT_ATTR_SCALAR } AttrKind;

typedef struct Attr {
    AttrKey key;
    int count; /* INTS */
    union {
        int64_t i; /* INT; SCALAR of integer type, sign-extended (i1: 0 or 1) */
        double f;  /* SCALAR of float type: exact in every format */
        const int64_t *ints;
        const char *s; /* interned in the module */
    };
    struct Attr *next;
} Attr;
extern const char *const tt_attr_names[TT_ATTR_KEYS];
extern const AttrKind tt_attr_kinds[TT_ATTR_KEYS];

/* ---- operations ---------------------------------------------------------------------------------------------------- */

typedef enum Opcode {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
    TT_OPCODES,
} Opcode;

typedef enum Trait {
    PURE = 1 << 0, /* no effect, value depends on operands only: may be removed, merged, moved, repeated */
    ELEMENTWISE = 1 << 1, /* element i of the result depends on element i of the operands */
    SHAPE = 1 << 2,       /* moves elements, computes nothing */
    COMMUTES = 1 << 3,
    COSTLY = 1 << 4,     /* recomputing it costs more than a store and a load */
    READS = 1 << 5,      /* may read memory */
    WRITES = 1 << 6,     /* may write memory */
    HAS_EFFECT = 1 << 7, /* must stay, in order */
    TERMINATOR = 1 << 8,
    FUNCTION = 1 << 9, /* of one float: languages have it by its name */
    ON_INTS = 1 << 10,
    ON_FLOATS = 1 << 11,
    ACCESS = 1 << 12,     /* of memory, through its first operand */
    ONE_LAYOUT = 1 << 13, /* operands and results have one shape, and one layout (ELEMENTWISE implies it) */
    SMEM_READS = 1 << 14, /* buffers among the operands */
    SMEM_WRITES = 1 << 15,
    TRUNCATES = 1
        << 16, /* rounds toward zero, or leaves the rest of that; `whole` where nothing negative is divided */
} Trait;

/* What an operation's regions are for. */
typedef enum Control {
    NO_REGION,
    COMBINE, /* one region combines elements: a function, not a part of the program's course */
    IF,      /* two regions, one of which runs */
    FOR,     /* one region, run as often as said */
    WHILE,   /* two regions: one tests, before each run of the other and once more */
} Control;

/* How far a module has come down. */
typedef enum Stage {
    STAGE_TILES,   /* what the frontend builds */
    STAGE_BUFFERS, /* one function, without calls, for a GPU; what tensor cores read lies in buffers */
    STAGE_LAYOUTS, /* every tile has a layout */
} Stage;
enum { /* the stages of a row */
       TILES = 1 << STAGE_TILES,
       BUFFERS = 1 << STAGE_BUFFERS,
       LAYOUTS = 1 << STAGE_LAYOUTS,
       ON_GPU = BUFFERS | LAYOUTS,
       ANY = TILES | ON_GPU,
};

typedef enum TypeRule { SAME, COMPARE, SELECT, CAST, GIVEN, NOTHING } TypeRule;

typedef struct OpInfo {
    const char *name;
    int operands_min, operands_max, results; /* -1: any number */
    Control control;
    TypeRule rule;
    unsigned traits, stages;
    uint64_t attrs; /* bit 1 << AttrKey: allowed */
    const char *meaning;
} OpInfo;
extern const OpInfo tt_op_infos[TT_OPCODES];

typedef struct Use {
    Value *value;
    Op *user;
    struct Use *next, *previous; /* uses of the same value */
} Use;

struct Value {
    const Type *type;
    const LinearLayout
        *layout;    /* of a tile: NULL until layouts are assigned; of a buffer: offsets to elements */
    Op *op;         /* that defines it, or NULL for a region's argument */
    Region *region; /* whose argument it is, or NULL */
    int index;      /* among the results or arguments */
    Use *uses;
    const Loc *loc;
    const char *name; /* of the user's variable, or NULL; for readable dumps */
    void *mark;       /* borrowed by one pass at a time: tt_take_marks / tt_return_marks */
    int id;           /* number given by the printer */
};

struct Op {
    Opcode opcode;
    int operand_count, result_count, region_count;
    Use *operands;
    Value **results;
    Region **regions;
    Attr *attrs;
    const Loc *loc;
    Region *parent;
    Op *next, *previous;
    int index; /* borrowed, like Value.mark */
};

struct Region {
    Op *op; /* that holds it, or NULL for a function's body */
    Function *function;
    Value **args;
    int arg_count;
    Op *first, *last; /* last is a terminator once the region is complete (or empty) */
};

struct Function {
    Module *module;
    const char *name;
    Region *body;       /* arguments are the parameters */
    Attr **param_attrs; /* for each parameter: divisibility = [n] and the like */
    const Type **result_types;
    int result_count;
    bool is_kernel;
    bool marks_taken;
    const Loc *loc;
    Function *next;
};

/* A request of the program that is not met. */
typedef struct Remark {
    const Loc *loc; /* NULL where it is not known */
    const char *message;
} Remark;

/* A point where a pass took one of several ways, of which it found `own` the best. */
enum { TT_MOST_CHOICES = 8 };
typedef struct Choice {
    const char *name;
    int64_t values[TT_MOST_CHOICES], own;
    int count;
} Choice;

struct Module {
    Arena *arena;              /* lives as long as the module */
    TT_VECTOR(Remark) remarks; /* for the user, once it is compiled */
    TT_VECTOR(Choice) choices; /* that passes have had so far */
    const char *asked_choices; /* "name=value name=value": what they are to choose; or NULL */
    Map types, strings, layouts;
    Map plans;           /* of the GPU lowering: Op* -> its plan, see gpu/plans.h */
    Function *functions; /* the kernel first */
    int op_count;        /* operations in it now */
    int ahead;           /* iterations that a pipelined loop's loads are ahead; of several the most */
    bool can_save;       /* do loops take shared memory that they could do without, to be faster? */
    Stage stage;
    struct PassManager *passes; /* opt/pass_manager.c */
};

static inline bool tt_has(const Op *op, unsigned trait)
{
    return (tt_op_infos[op->opcode].traits & trait) != 0;
}
static inline Control tt_control(const Op *op) { return tt_op_infos[op->opcode].control; }
static inline bool tt_is_loop(const Op *op) { return tt_control(op) >= FOR; }
/* A loop or a branch: its regions are parts of the program's course. */
static inline bool tt_is_control(const Op *op) { return tt_control(op) >= IF; }
int tt_region_count(Control control);
Opcode tt_find_opcode(const char *name); /* TT_OPCODES when there is none */
/* The function of one float with this name; TT_OPCODES when there is none. */
Opcode tt_find_function_opcode(const char *name);
static inline Value *tt_operand(const Op *op, int i) { return op->operands[i].value; }
static inline Op *tt_terminator(const Region *region) { return region->last; }
static inline bool tt_has_uses(const Value *value) { return value->uses != NULL; }
static inline bool tt_has_one_use(const Value *value) { return value->uses && !value->uses->next; }
/* The operation that defines `value` if it has this opcode, else NULL. */
static inline Op *tt_def(const Value *value, Opcode opcode)
{
    return value->op && value->op->opcode == opcode ? value->op : NULL;
}

#define TT_FOR_OPS(op, region) for (Op *op = (region)->first; op; op = op->next)
/* `op` may be erased or moved, or others inserted before its successor, inside the loop. */
#define TT_FOR_OPS_SAFE(op, region)                                                                          \
    for (Op *op = (region)->first, *op##_next; op && (op##_next = op->next, true); op = op##_next)
#define TT_FOR_USES(use, val) for (Use *use = (val)->uses; use; use = use->next)
#define TT_FOR_USES_SAFE(use, val)                                                                           \
    for (Use *use = (val)->uses, *use##_next; use && (use##_next = use->next, true); use = use##_next)
#define TT_FOR_FUNCTIONS(f, module) for (Function *f = (module)->functions; f; f = f->next)

/* ---- module.c: building and changing ------------------------------------------------------------------------------- */

Module *tt_new_module(Arena *arena);
const char *tt_intern(Module *module, const char *text);
Function *tt_new_function(Module *module, const char *name, const Type *const *params, int param_count,
                          const Type *const *results, int result_count);
Function *tt_find_function(const Module *module, const char *name);

Attr *tt_find_attr(const Op *op, AttrKey key); /* NULL when absent */
/* Of block_pointers, whether hardware may copy the block, as far as is known by now. */
static inline bool tt_may_be_copied(const Op *op)
{
    return tt_find_attr(op, ATTR_multiples) || tt_find_attr(op, ATTR_terms);
}
/* Of block_pointers: is dimension `d` checked? */
bool tt_is_checked(const Op *op, int d);
int64_t tt_int_attr(const Op *op, AttrKey key, int64_t otherwise);
const char *tt_string_attr(const Op *op, AttrKey key, const char *otherwise);
/* New attribute in front of `next`, for building lists: tt_attr_int(m, ATTR_axis, 0, NULL). */
Attr *tt_attr_int(Module *module, AttrKey key, int64_t value, Attr *next);
Attr *tt_attr_float(Module *module, AttrKey key, double value, Attr *next);
Attr *tt_attr_ints(Module *module, AttrKey key, const int64_t *values, int count, Attr *next);
/* Of a parameter whose address or value is a multiple of a number; of a negative one if it is negative. */
Attr *tt_parameter_attrs(Module *module, int64_t divisibility);
Attr *tt_attr_string(Module *module, AttrKey key, const char *value, Attr *next);
void tt_set_attr(Op *op, Attr *attr); /* replaces one of the same key */
void tt_remove_attr(Op *op, AttrKey key);
Attr *tt_copy_attrs(Module *module,
                    const Attr *attrs); /* a list is changed in place, so each op has its own */
bool tt_same_attrs(const Op *a, const Op *b);
/* ... but for one key. */
bool tt_same_attrs_but(const Op *a, const Op *b, int ignored);

/* Where new operations go. With `raw` set nothing folds (for tests and for passes that must keep what they build). */
typedef struct Builder {
    Module *module;
    Region *region;
    Op *before; /* NULL: at the end of the region */
    const Loc *loc;
    bool raw;
} Builder;
Builder tt_builder_at_end(Region *region);
Builder tt_builder_before(Op *op); /* takes op's location */
Builder tt_builder_after(Op *op);

/* The one primitive. Result types may be NULL where the row's type rule gives them. Regions are created without
 * arguments; add them with tt_add_region_arg. A module of too many operations raises a user error. */
Op *tt_build_op(Builder *b, Opcode opcode, Value *const *operands, int operand_count,
                const Type *const *result_types, int result_count, Attr *attrs);
/* The result's type by the row's rule, or NULL where the builder of the operation must give it. */
const Type *tt_infer_type(Module *module, Opcode opcode, Value *const *operands);
/* builder.c. Single results, folded and simplified before anything is allocated (unless b->raw): */
Value *tt_build(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
                Attr *attrs);
Value *tt_build1(Builder *b, Opcode opcode, Value *x);
Value *tt_build2(Builder *b, Opcode opcode, Value *x, Value *y);
Value *tt_build3(Builder *b, Opcode opcode, Value *x, Value *y, Value *z);
Value *tt_build_cast(Builder *b, Opcode opcode, Value *x, const Type *element); /* element type; shape kept */
Value *tt_build_int(Builder *b, const Type *type, int64_t value);               /* scalar or tile type */
Value *tt_build_float(Builder *b, const Type *type, double value);              /* rounded to the type */
Value *tt_build_range(Builder *b, int64_t start, int64_t end);
Value *tt_build_splat(Builder *b, Value *scalar, const int64_t *shape,
                      int rank);                                       /* rank 0: the scalar itself */
Value *tt_build_expand_dims(Builder *b, Value *x, int axis);           /* a scalar becomes tile<1> */
Value *tt_build_broadcast(Builder *b, Value *x, const int64_t *shape); /* same rank */
Value *tt_build_reshape(Builder *b, Value *x, const int64_t *shape, int rank);
Value *tt_build_permute(Builder *b, Value *x, const int64_t *order);
Value *tt_build_addptr(Builder *b, Value *pointer, Value *offset);

Value *tt_add_region_arg(Region *region, const Type *type);
void tt_move_region_arg(Value *arg, Region *to); /* its uses go with it */
void tt_set_operand(Op *op, int index, Value *value);
void tt_add_operand(Op *op, Value *value);
void tt_remove_operand(Op *op, int index);
Value *tt_add_result(Op *op, const Type *type);
void tt_remove_result(Op *op, int index);             /* must have no uses */
void tt_remove_region_arg(Region *region, int index); /* must have no uses */
void tt_replace_all_uses(Value *old, Value *with);
void tt_erase_op(Op *op); /* results must have no uses; inner regions are erased too */
void tt_move_before(Op *op, Op *anchor);
void tt_move_to_end(Op *op, Region *region);
/* Copy of op (regions included) at the builder's place; `map` gives replacements of operands (Value* -> Value*) and
 * receives the new results and region arguments. */
Op *tt_clone_op(Builder *b, const Op *op, Map *map);
/* Copies the operations of `region`, its terminator excepted, to the builder's place; arguments must be in `map`. */
void tt_clone_region_body(Builder *b, const Region *region, Map *map);
/* Is `value` defined outside of `region` (and of every region inside it)? */
bool tt_is_defined_outside(const Value *value, const Region *region);
/* Does every result of `a` dominate `b` (same or enclosing region, earlier)? Linear in the region; index is not used. */
bool tt_comes_before(const Op *a, const Op *b);
/* Notes that something which the program asked for, at `loc`, is not done; once for each line and text. Under
 * TRITON_STRICT=1 it is an error. */
void tt_remark(Module *module, const Loc *loc, const char *format, ...) TT_PRINTF(3, 4);
/* choices.c: registers a choice point and returns the value that is asked for, if it is one of these, else `own`. The name
 * is a literal. Points of one name are one choice, of the values of all. */
int64_t tt_choose(Module *module, const char *name, const int64_t *values, int count, int64_t own);
/* After the passes: raises a user error if something is asked for that nobody had to choose. */
void tt_check_choices(const Module *module);
/* Calls function on every op of a region, inner regions after the op that holds them. The op may be erased. */
void tt_walk(Region *region, void (*function)(Op *op, void *context), void *context);

/* Borrowing of Value.mark and Op.index for one pass; taking clears them in the whole function. */
void tt_take_marks(Function *function);
void tt_return_marks(Function *function);

/* ---- failure.c: checks ---------------------------------------------------------------------------------------------- */

/* Of an assert: its mask, or NULL; how many values its message shows, and these. */
Value *tt_assert_mask(const Op *op);
int tt_assert_values(const Op *op, Value *values[2]);
/* "kernel.py:12, called at kernel.py:30"; empty if unknown. */
const char *tt_place_text(const Loc *loc, Arena *arena);
/* What an assert says; texts are in `arena`. */
Failure tt_assert_failure(const Op *op, Arena *arena);

/* ---- fold.c -------------------------------------------------------------------------------------------------------- */

/* Constant (scalar or splat tile) behind a value: through `constant` and `splat` of a constant. */
bool tt_constant_int(const Value *value, int64_t *out);
bool tt_constant_float(const Value *value, double *out);
bool tt_is_zero(const Value *value); /* of integers or floats, of either sign, or a tile of them */
bool tt_is_constant(const Value *value);
/* What the operation reduces to: an existing value or a constant, or NULL. Never builds anything else. */
Value *tt_fold(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
               Attr *attrs);
/* Scalar semantics of one pure elementwise operation on constants in the element type's encoding (Attr SCALAR
 * convention). False when the row does not fold these values. */
typedef union Scalar {
    int64_t i;
    double f;
} Scalar;
bool tt_eval_scalar(Opcode opcode, const Type *operand_type, const Type *result_type, const Scalar *operands,
                    Scalar *result);

/* A FUNCTION, as its row says it. */
float tt_eval_single(int32_t opcode, float x);
double tt_eval_double(int32_t opcode, double x);

/* ---- print.c, parse.c, verify.c ------------------------------------------------------------------------------------- */

enum { TT_PRINT_LOCATIONS = 1 };
char *tt_print_module(const Module *module, Arena *arena, int flags);
/* With `notes` (Op* or Function* -> text) each subject's lines stand under its own. */
char *tt_print_annotated(const Module *module, Arena *arena, int flags, const Map *notes);
void tt_print_type(Text *text, const Type *type);
/* Reads what tt_print_module writes. A mistake in the text raises TT_USER_ERROR at its line and column. */
Module *tt_parse_module(Arena *arena, const char *text, const char *file);
/* NULL when the module is well-formed, else the IR with each failure under its operation. */
const char *tt_verify(const Module *module, Arena *arena);
