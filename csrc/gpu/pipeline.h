/* Internal to the pipeliner (pipeline.c): a loop on its way to loads that are ahead of their use. */
#pragma once
#include "gpu/passes.h"
#include "opt/pass.h"

/* What leads to a load (an index, an address): read an iteration further ahead than the load, and carried to it. */
typedef struct Lookup {
    const Op *load;
    int carried;
} Lookup;

/* An address or mask of a copy that takes long to compute: the iteration before does, and the loop carries it. */
typedef struct Way {
    Value *value; /* in the iteration that the program's load is in */
    int carried;
} Way;

/* A view of the loop's values some iterations ahead. */
typedef struct Ahead {
    int distance;
    struct Ahead
        *further; /* one more iteration, for lookups; NULL: they are repeated where they are asked for */
    TT_VECTOR(Lookup) lookups;
    Map inside;  /* Value* -> its value that many iterations on, for use in the loop */
    Map *before; /* for each iteration up to `distance`: Value* -> its value there, before the loop */
    TT_VECTOR(int) carried, copies; /* carried values that are also carried ahead, and as which */
} Ahead;

typedef struct Staged {
    Op *load;
    Ahead *ahead;
    bool is_async, is_kept; /* kept: without a buffer */
    bool is_direct; /* through registers, and into the buffer at once: there are not enough to carry it in */
    bool is_factor, proxy; /* factor: of multiply-adds; proxy: wgmma reads the buffer */
    bool is_fragment;      /* goes from the buffer to wgmma's registers as it is */
    bool is_gathered;      /* a few bytes at a time: many instructions */
    bool is_block;         /* one instruction copies all of it */
    bool is_cached;        /* in the first cache, on its way into the buffer */
    Value *buffer;         /* all slots */
    Value *operands[3];    /* of the load some iterations ahead */
    Value *runs;           /* i1: is there that iteration? NULL: never, the loop is known to be too short */
    Value *read;           /* takes the load's place in the loop, or NULL */
    int carried; /* through registers: as which value of the loop goes what the next slot is to hold, or what is kept */
    const LinearLayout *layout;
    int depth_axis;  /* its dimension that is the products' K, or -1 */
    int64_t part[3]; /* what is copied now: along this axis, from, to; 0: all, or nothing */
} Staged;

/* What the loop computes for products. It is to go to them through two slots, of which those of the iteration before may still
 * read the other one. */
typedef struct Computed {
    Value *
        source; /* a buffer that is made of it in each iteration; or the tile, which products take from registers */
    const LinearLayout *layout;
    Value *buffer; /* both slots */
} Computed;

enum { MOST_PORTIONS = 8 /* of an iteration's copies */ };

typedef struct Pipeline {
    Module *module;
    const GpuOptions *options;
    Arena *scratch;
    AxisInfos *axis_infos;
    const ParamPointers *pointers;
    Loop loop;
    Builder before, inside;
    int64_t trips; /* iterations at most; INT64_MAX when nothing is known */
    int distance, slots;
    int stored; /* iterations ahead that what goes through registers is stored; it is loaded one more ahead */
    bool in_halves;     /* goes the only product, whose left operand is read into registers for each */
    bool is_compact;    /* S = D + 1 although products stay under way */
    bool is_alone;      /* has a program the multiprocessor for itself? */
    int groups;         /* of copies, for an iteration: 2 where each half of K has its own */
    int portions;       /* of a group, each behind a step of the product */
    int64_t kept_bytes; /* of each thread's registers */
    Value *barriers;    /* at which blocks arrive, one a slot; NULL: no blocks */
    Ahead far, near, next, behind_far, behind_near; /* behind: where the lookups are */
    TT_VECTOR(Op *) products;                       /* of the body and of branches in it */
    TT_VECTOR(Op *) leading;                        /* loads of the body that lead to others */
    TT_VECTOR(Staged) loads;
    TT_VECTOR(Way) ways;
    TT_VECTOR(Op *) deferred;   /* waits for products whose sums the next iteration adds to */
    TT_VECTOR(Op *) deferrable; /* waits that can be deferred if what is computed gets slots */
    TT_VECTOR(Computed) computed;
    Map moved; /* pointers of copies -> what these go by, at last */
} Pipeline;

/* ---- pipeline_loads.c: what is loaded ahead, in Pipeline.loads ----------------------------------------------------------- */

/* Neighbours in memory that one instruction loads. */
int64_t pipeline_bytes_at_once(const Pipeline *p, const Op *load);
/* Groups of copies that may be under way where one is waited for: those of later iterations, and of a later half. */
static inline int pipeline_groups_left(const Pipeline *p) { return p->distance * p->groups - 1; }
bool pipeline_is_fragment(const Use *use); /* is it a left operand in registers there? */
/* Can each half of K be copied by itself? */
bool pipeline_copies_in_halves(const Pipeline *p);
const Type *pipeline_tile_of(Module *module, const Op *load); /* a number is a tile of one element */
bool pipeline_keep(Pipeline *p,
                   const Type *type); /* is it little enough to keep in registers? then that is noted */
/* Does the loop multiply tiles for the load's addresses, or its mask, each time? Not where other loads lead to it. */
bool pipeline_has_long_way(const Pipeline *p, const Op *load);
bool pipeline_reads_what_stays(const Pipeline *p, const Op *op); /* a load, of what the loop does not write */
/* Is the value computed from the loop's index and what it carries, without the loop's products? */
bool pipeline_is_computable(const Pipeline *p, const Value *value);
bool pipeline_passes_on(const Op *op); /* does a product's operand come from what it takes? */
/* The loads of this loop's body that operands of products are made of; then those that are computed with besides. */
void pipeline_find_loads_of_products(Pipeline *p, Op *loop);
void pipeline_find_other_loads(Pipeline *p);
/* Where the loop has no products, and says how far ahead it is to load, its loads. */
void pipeline_find_asked_loads(Pipeline *p);
/* In all loops, blocks of which copies are made otherwise lose their `numbers`; is there one? */
bool pipeline_give_up_blocks(Pipeline *p);

/* ---- pipeline_branches.c: loads that products in branches take --------------------------------------------------------------- */

/* Takes them out of the branches, where the loop has no other products; for tt_change_loops, with the Pipeline. */
bool pipeline_leave_branches(Op *loop, void *context);

/* ---- pipeline_depth.c: how far ahead, in how many slots, through which cache ------------------------------------------------- */

/* Which loads through registers do not stay there from one iteration to the next. */
void pipeline_choose_direct(Pipeline *p);
/* Pipeline.distance, slots, stored and what goes with them; 0 iterations where nothing fits. */
void pipeline_choose_distance(Pipeline *p);

/* ---- pipeline_ahead.c: values some iterations ahead ------------------------------------------------------------------------ */

Ahead pipeline_new_ahead(Pipeline *p, int distance);
Value *pipeline_value_before(Pipeline *p, Ahead *a, Value *value,
                             int iteration);                      /* in that iteration, before the loop */
Value *pipeline_value_ahead(Pipeline *p, Ahead *a, Value *value); /* Ahead.distance iterations on */
void pipeline_look_up(Pipeline *p, Ahead *a); /* what leads to the next iteration's loads */
void pipeline_advance_carried(Pipeline *p,
                              Ahead *a); /* at the end: what is carried ahead goes one iteration on */
/* i1: does the loop come to this iteration; is there one so many after that which runs? */
Value *pipeline_runs_before(Pipeline *p, int iteration);
Value *pipeline_runs_ahead(Pipeline *p, int distance);
Value *pipeline_masked(Builder *b, const Type *type, Value *mask,
                       Value *runs); /* the mask, and `runs` for all elements */
/* The operation on other operands; a load where the iteration `runs`. */
Value *pipeline_repeat(Builder *b, const Value *value, Value **operands, Value *runs);
/* Pointers of copies in loops become sums that cost an addition each; for tt_walk, with the Pipeline. */
void pipeline_simplify_pointers(Op *op, void *context);

/* ---- pipeline_products.c: products under way, and what stands around them ------------------------------------------------- */

/* Those that may still run at the next iteration's barrier, Pipeline.deferred, and Pipeline.deferrable. */
void pipeline_find_deferred(Pipeline *p);
void pipeline_defer_computed(Pipeline *p);    /* moves the latter to the former: what is computed has slots */
bool pipeline_holds_slots(const Pipeline *p); /* do those that still run there read slots of copies? */
void pipeline_defer_waits(Pipeline *p);
/* In front of what the copies stand, each group's, or each portion's; takes products apart for that. */
void pipeline_place_copies(Pipeline *p, Op *places[MOST_PORTIONS]);
Op *pipeline_place_of_read(const Pipeline *p,
                           const Value *value); /* in front of it `value` is read from its buffer */
Op *pipeline_part_of(const Region *region,
                     Op *op); /* the operation of `region` that `op` is in, or is; NULL: none */
bool pipeline_comes_before(const Op *op, const Op *other); /* in one region */

/* ---- pipeline_halves.c: left operands in halves, from registers ------------------------------------------------------------- */

enum { STEP_BYTES = 32 /* of K, of one instruction */ };
/* Can it go in two parts, of which one is under way while the left operand of the other one is read, or computed? That gains
 * where a program has a multiprocessor for itself: else another one's products fill the gap, and so do those of many warps, if
 * there is no more to do than that. */
bool pipeline_can_halve(const Pipeline *p, const Op *product);
/* Does the loop compute the left operand, in registers, of what is copied ahead? */
bool pipeline_computes_left(const Pipeline *p, const Op *product);
/* Of the left operand of both, each gets the part that it multiplies. */
void pipeline_make_halves(Pipeline *p, Op *first, Op *second);

/* ---- pipeline_portions.c: copies behind steps of a product ---------------------------------------------------------------- */

/* Portions of the copies, if the first of so many steps of the product goes by itself. */
int pipeline_count_portions(const Pipeline *p, const Op *product, int steps);
/* Chooses what of the load the portion has, in Staged.part; whether there is any. */
bool pipeline_choose_portion(const Pipeline *p, Staged *staged, int portion);

/* ---- pipeline_computed.c: operands that the loop computes ------------------------------------------------------------------ */

/* Notes the operand in Pipeline.computed; whether slots can hold it. */
bool pipeline_note_computed(Pipeline *p, const Op *product, int operand);
int64_t pipeline_computed_bytes(const Pipeline *p); /* that the slots take more than there are buffers now */
/* Takes all that is computed through slots. */
void pipeline_rewrite_computed(Pipeline *p);
