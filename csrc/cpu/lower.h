/* Tile IR to LLVM IR for the CPU: what the files of this folder share. The way of a function:
 *
 *   plan.c     which tiles are written to scratch ("materialised"), and which sinks share a loop nest ("groups")
 *   buffers.c  which values share a buffer, and where in the scratch arena each lies
 *   lower.c    emits the groups of each region in order; control.c the loops and branches between them; function.c
 *              what is around them
 *   nest.c     a group's loops, of the shape that dims.c chooses; eval.c computes values in them, vector by vector;
 *              sinks.c what happens to the values
 *
 * A tile that is not materialised is virtual: whoever needs it computes it at the coordinates where it stands. */
#pragma once
#include "analysis/analysis.h"
#include "cpu/emit.h"
#include "opt/pass.h"
#include "cpu/kernel.h"

enum { NEVER = 1 << 30 };

/* ---- the plan --------------------------------------------------------------------------------------------------------- */

/* A tile in the scratch arena, row-major in memory form. */
typedef struct Buffer {
    const Type *type;
    int64_t bytes, offset;
    LLVMValueRef outside; /* not NULL: not in the arena, but here (tiles of a caller) */
    int first, last;      /* time of the first write and the last read, in groups */
} Buffer;

typedef struct ValueInfo {
    bool materialize;
    Buffer *buffer;          /* where it is written, or NULL: virtual */
    const Value *old;        /* results of control: what lives in the buffer before */
    bool stored;             /* emission has written it */
    int group;               /* that writes or produces it, within its region; -1: none */
    int ready_same;          /* first group that can use it at its own coordinates */
    int ready_any;           /* ... and at any */
    int cost, depth;         /* of computing one element from what is stored */
    int first, last;         /* groups that use it, directly or through virtual values; first > last: none */
    bool inner;              /* used in an inner region */
    bool reshaped;           /* used by an operation that repeats its elements */
    int seen_same, seen_any; /* stamps of the walks over virtual values */
    LLVMValueRef scalar;     /* emitted */
    LLVMValueRef lanes;      /* bound while a combine region is emitted */
} ValueInfo;

static inline ValueInfo *info_of(const Value *value) { return value->mark; }

typedef enum SinkKind {
    SINK_COPY, /* value -> buffer */
    SINK_STORE,
    SINK_REDUCE,
    SINK_SCAN,
    SINK_ATOMIC,
    SINK_JOIN,
    SINK_EXTRACT, /* an element as a scalar: extract and split of rank 1 */
    SINK_CHECK,   /* assert */
    SINK_HISTOGRAM,
    SINK_PAIRS, /* SINK_COPY of the right operand of a dot, two rows interleaved */
    SINK_NONE,
} SinkKind;

typedef struct Sink {
    SinkKind kind;
    Op *op;         /* NULL for SINK_COPY */
    Value *value;   /* SINK_COPY: what; else NULL */
    Buffer *to;     /* SINK_COPY: NULL means the value's own buffer */
    int64_t origin; /* SINK_COPY into a part of a buffer: its first element; the buffer's strides hold */
} Sink;

typedef struct GroupLoad {
    Op *op;
    bool same; /* at the coordinates of the iteration only */
} GroupLoad;

typedef struct Group {
    Op *step;          /* an op that is a group by itself, or NULL: a loop nest over the sinks */
    const Type *space; /* of a nest: any type of the iteration's shape */
    int axis;          /* of its reductions and scans, or -1 */
    bool alone;        /* takes no further sinks */
    int position;      /* of the op that opened it */
    bool effects;      /* what is to stay in order */
    TT_VECTOR(Sink) sinks;
    TT_VECTOR(GroupLoad) loads; /* virtual loads that it evaluates */
    TT_VECTOR(Op *) writes;     /* stores and atomics among the sinks */
} Group;

/* A yielded tile that is not computed where it belongs: copied at the end of the region. */
typedef struct YieldCopy {
    Value *value;
    Buffer *by_way_of; /* not NULL: first there, all of these before any of the others */
    Buffer *to;
} YieldCopy;

typedef struct RegionPlan {
    Region *region;
    TT_VECTOR(Group *) groups;
    TT_VECTOR(YieldCopy) copies;
} RegionPlan;

typedef struct OpPlace {
    int position, group;
} OpPlace;

/* ---- a function being lowered ----------------------------------------------------------------------------------------- */

typedef struct Lower {
    Emit *e;
    Arena *arena;
    CpuImage *image;
    Function *function;
    AxisInfos *axis;
    Map plans; /* Region* -> RegionPlan* */
    Map dots;  /* Op* -> DotPlan* */
    Map views; /* Op* (a reshape) -> Buffer*: its operand's, with its result's shape */
    TT_VECTOR(Buffer *) buffers;
    OpPlace *places; /* by Op.index */
    int stamp;
    int64_t scratch_size;

    LLVMBuilderRef builders[TT_MAX_RANK + 3]; /* [0]: straight code; then one a loop level of the nest */
    LLVMValueRef launch, scratch, program[3], grid[3];
    LLVMValueRef stream; /* i1: stores should bypass the caches */
    int streaming_nests;
    LLVMValueRef
        stored;     /* pointer to the count of bytes that streaming nests have stored, or NULL: none yet */
    bool is_callee; /* called from another function, by `call` */
    int64_t callee_scratch; /* what the functions that it calls need behind its own */
    Map *functions;         /* Function* -> LoweredFunction*, of the module */
} Lower;

typedef struct LoweredFunction {
    LLVMValueRef function;
    LLVMTypeRef type;
    int64_t scratch_size;
    bool finished;
} LoweredFunction;

static inline const AxisInfo *axis_of(const Lower *l, const Value *value)
{
    return tt_axis_info(l->axis, value);
}

/* ---- walk.c ---- */
SinkKind sink_kind(const Op *op);
bool is_virtual_op(const Op *op); /* its tile is computed where it is needed */
bool is_pure_scalar(const Op *op);
bool any_inside(const Op *op, unsigned traits);  /* in op or its regions */
bool is_splat(const Value *value);               /* all elements equal by its operation */
bool keeps_coordinates(const Op *reshape);       /* only adds and removes dimensions of extent 1 */
bool keeps_iteration(const Op *op, int operand); /* uses the operand at the result's own coordinates */
const Type *space_of(const Op *op);              /* the iteration space of a sink */
/* What is read when values are computed in a group of a region: buffers and virtual loads. `same`: at the coordinates
 * of the iteration. */
typedef struct ReadWalk {
    Lower *l;
    const Region *region;
    int group, stamp;
    void *context;
    void (*on_buffer)(struct ReadWalk *walk, Value *value, bool same);
    void (*on_load)(struct ReadWalk *walk, Op *load, bool same);
} ReadWalk;
void walk_value(ReadWalk *walk, Value *value, bool same);
void walk_sink(ReadWalk *walk, const Sink *sink);
void walk_group(ReadWalk *walk, const RegionPlan *plan, int group);
void walk_regions(ReadWalk *walk, const Op *op); /* what is computed inside of a control operation */

/* ---- alias.c ---- */
/* May a nest do `first` (a load, evaluated at its own coordinates only when `same`; or a store) and `store` vector by
 * vector in turn, instead of all of `first` before? */
bool may_interleave(const Lower *l, Op *first, bool same, Op *store);

/* ---- plan.c ---- */
void plan_function(Lower *l);
RegionPlan *plan_of(const Lower *l, const Region *region);

/* ---- buffers.c ---- */
Buffer *new_buffer(Lower *l, const Type *type);
void assign_buffers(Lower *l);

/* ---- lower.c ---- */
LLVMValueRef lower_scalar(Lower *l, Value *value);
void lower_region(Lower *l, Region *region);
LLVMValueRef buffer_pointer(Lower *l, const Buffer *buffer);
void lower_copy(Lower *l, Value *value, Buffer *to, int64_t origin);
void straight(Lower *l); /* code goes to straight code */

/* ---- function.c ---- */
Lower *new_lower(Emit *e, Arena *arena, CpuImage *image, Function *function, Map *functions);
void lower_kernel(Lower *l);
LoweredFunction *lower_function(Lower *caller, Function *function, const Loc *call);

/* ---- control.c, effects.c, dot.c ---- */
void lower_for(Lower *l, Op *op);
void lower_while(Lower *l, Op *op);
void lower_if(Lower *l, Op *op);
void lower_call(Lower *l, Op *op);
void lower_print(Lower *l, Op *op);
void lower_clock(Lower *l, Op *op);
LLVMValueRef stack_slot(Emit *e, LLVMTypeRef type); /* in the function's first block */
/* Where a lane of `fails` holds (an i1 or a vector of them), reports the assertion with that lane's values, and ends the
 * program. */
void emit_failure(Lower *l, const Op *op, LLVMValueRef fails, LLVMValueRef const *values, int count);
void emit_stop_after_failure(Lower *l);   /* if any program of the launch has failed */
void plan_dot(Lower *l, Op *op, int now); /* reserves its packing buffers */
void lower_dot(Lower *l, Op *op);

/* ---- nests: nest.c, eval.c, sinks.c, ... -------------------------------------------------------------------------------- */

/* Where the lanes of a vector stand along one dimension: lane i at base + offset + i * stride. */
typedef struct Coord {
    LLVMValueRef base; /* i64, or NULL: 0 */
    int level;         /* of the loop that base belongs to */
    int64_t divisor;   /* divides base */
    int64_t offset, stride;
} Coord;

/* A value at W places: one LLVM vector, or when all lanes are equal one scalar. */
typedef struct Vec {
    LLVMValueRef v;
    int level; /* innermost loop it depends on, where it is computed */
    bool uniform;
} Vec;

typedef struct Memo Memo;
enum { MEMO_SLOTS = 256 };

enum { MOST_MASKS = 8 };

/* A mask whose dimension i runs along dimension map[i] of the nest; -1: it has one place there. */
typedef struct NestMask {
    Value *mask;
    int map[TT_MAX_RANK];
    bool reaches;      /* it is known how far, see prefix.c; then */
    LLVMValueRef none; /* i64: it is false from this place on */
} NestMask;

typedef struct Nest {
    Lower *l;
    Emit *e;
    const Group *group;
    int rank;
    const int64_t *shape;
    int lane_dim;                  /* -1: none, all scalar */
    int width;                     /* lanes; 0: scalars */
    int axis;                      /* of reductions and scans, or -1 */
    int effort;                    /* operations in the body, about */
    int block_dim;                 /* whose rows are done several at a time, or -1 */
    bool transposes;               /* `width` rows at a time, so that loads along them can be transposed */
    bool by_pairs;                 /* two rows at a time, at least */
    int rows;                      /* in the current block, which its copies are; 0: outside of blocks */
    bool square;                   /* as many as a vector has lanes */
    bool only_tails;               /* what is behind the last whole vector of a row, not what is before */
    int64_t block_row;             /* offset of the block's first row */
    int order[TT_MAX_RANK], depth; /* dimensions from the outermost loop to the innermost */
    int level;                     /* innermost open loop */
    int instance[TT_MAX_RANK + 3], instances; /* a loop's number: memos of a closed loop do not hold */
    Coord coords[TT_MAX_RANK];
    int copies;                 /* vectors side by side in the current body */
    int active;                 /* lanes in use; less than width in the last vector of a row */
    bool reverse;               /* goes down along the axis */
    bool needs_first, first;    /* the first step along the axis is its own code; this is it */
    bool carrying;              /* inside the axis loop */
    bool streamed;              /* it has a loop that streams */
    bool streaming;             /* stores bypass the caches */
    NestMask masks[MOST_MASKS]; /* that accesses and selects use */
    int mask_count;
    int assumed_level;          /* from this level on, those that reach are true; 0: nothing is assumed */
    int64_t body_vector;        /* offset of the body's first vector */
    int combine_width;          /* of the combine region being emitted */
    LLVMValueRef *accumulators; /* [copy][slot], carried around the axis loop */
    int slots;
    Memo *memos[MEMO_SLOTS];
} Nest;

enum { MOST_COPIES = 8 };

/* dims.c */
void choose_dims(Nest *n);
/* From where the dimensions of an operation's result run, where those of its operand do, for operations that only move
 * elements. */
void map_operand(const Op *op, const int *map, int *inner);

/* nest.c */
void emit_nest(Lower *l, const Group *group);
void at_level(Nest *n, int level);       /* code goes to this loop level */
LLVMValueRef active_mask(const Nest *n); /* NULL: all lanes */

/* eval.c */
Vec eval(Nest *n, Value *value, const Coord *coords);
LLVMValueRef eval_lanes(Nest *n, Value *value, const Coord *coords); /* as a vector of the nest's width */
LLVMValueRef splat(Nest *n, Vec vec);
void remember_vec(Nest *n, const Value *value, const Coord *coords, Vec vec); /* for eval to find */
Coord zero_coord(void);
Coord const_coord(int64_t at);
bool within_group(const Nest *n, const Coord *coord, int64_t size, int64_t extent);
Coord scale_coord(Nest *n, Coord coord, int64_t factor, int64_t offset);
void operand_coords(Nest *n, const Op *op, int result, const Coord *coords, Coord *inner);
/* Of the first lane; the others are *stride elements apart. */
Vec buffer_address(Nest *n, const Buffer *buffer, int64_t origin, const Coord *coords, int64_t *stride);

/* memory.c */
Vec eval_load(Nest *n, Op *op, const Coord *coords);
/* Evaluates what the store needs; sink_store then finds it in the memos. */
void eval_store(Nest *n, Op *op);
void sink_store(Nest *n, Op *op);
Vec read_value(Nest *n, const Value *value, const Coord *coords); /* that is stored */
Vec read_buffer(Nest *n, const Buffer *buffer, const Coord *coords);
/* Element number `origin` of the buffer is where the coordinates are 0. */
void write_buffer(Nest *n, const Buffer *buffer, int64_t origin, const Coord *coords, Vec value);
void lower_scalar_load(Lower *l, Op *op);
void lower_scalar_store(Lower *l, Op *op);

/* prefix.c */
void note_mask(Nest *n, Value *mask, const int *map);
/* Is it known how far along a dimension a noted mask is true? */
bool has_reach(Nest *n, const Value *mask, int dim);
/* i64, at the current level: all masks of which that is known are true at the first so many places along the dimension, for
 * all that a body does there; at most all of them and perhaps less than 0. NULL: it is known of none. */
LLVMValueRef emit_reach(Nest *n, int dim);
/* i64, after emit_reach: from this place on a nest that only stores does nothing; NULL where that is not known. */
LLVMValueRef emit_last_store(Nest *n);
bool is_assumed_true(const Nest *n, const Value *mask, const Coord *coords);

/* stream.c */
bool can_stream(Nest *n);
/* i1, at the current level: the lanes from 0 to `end` of this row can be streamed, and all masks that reach are true. */
LLVMValueRef stream_condition(Nest *n, int64_t end);
void count_stores(Nest *n);   /* after the nest */
void report_stores(Lower *l); /* at the end of the function */
void mark_streaming(Emit *e, LLVMValueRef store, int align);

/* ---- passes on tile IR, of opt/passes.def ---- */
#define CPU_PASS(name) bool tt_cpu_##name(Module *module, Arena *scratch);
#include "opt/passes.def"

/* sinks.c */
int sink_slots(const Sink *sink); /* accumulators that it carries around the axis loop */
void eval_operands(Nest *n, const Sink *sink);
void prepare_sink(Nest *n, const Sink *sink);
void begin_sink(Nest *n, const Sink *sink, LLVMValueRef *slots);
void run_sink(Nest *n, const Sink *sink, LLVMValueRef *slots);
void end_sink(Nest *n, const Sink *sink, int slot);
void finish_sink(const Sink *sink);

/* reduce.c, scan.c, atomics.c */
bool has_identity(const Op *op);
void begin_reduce(Nest *n, const Op *op, LLVMValueRef *slots);
void step_reduce(Nest *n, const Op *op, LLVMValueRef *slots);
void end_reduce(Nest *n, const Op *op, int slot);
void step_scan(Nest *n, const Op *op, LLVMValueRef *slots);
void sink_atomic(Nest *n, Op *op);
void run_pairs(Nest *n, const Sink *sink); /* dot.c */
void lower_scalar_atomic(Lower *l, Op *op);
