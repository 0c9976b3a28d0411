/* The machine-independent pipeline: its steps, as a table that one can see at once. Which passes take part is said in
 * passes.def. */
#include "opt/pass.h"

/* Each function of the module by itself. */
#define OPT_PASS(name, steps)                                                                                \
    static bool run_##name(Module *module, const void *options, Arena *scratch)                              \
    {                                                                                                        \
        (void)options;                                                                                       \
        bool changed = false;                                                                                \
        TT_FOR_FUNCTIONS(function, module)                                                                   \
        changed |= tt_opt_##name(function, scratch);                                                         \
        return changed;                                                                                      \
    }
#include "opt/passes.def"

static const Pass passes[] = {
#define OPT_PASS(name, steps) [PASS_##name] = {#name, run_##name, STAGE_TILES},
#include "opt/passes.def"
};

static const PassTable table = {"opt", passes, TT_COUNT(passes), NULL, NULL};

enum {
    SIMPLIFY = 1 << 0,
    SIGNS = 1 << 1,
    DEPTHS = 1 << 2,
    WIDEN = 1 << 3,
    UNROLL = 1 << 4,
    IMPROVE = 1 << 5,
    MAPS = 1 << 6,
    BLOCKS = 1 << 7,
    LOADS = 1 << 8
};

static const unsigned steps_of[] = {
#define OPT_PASS(name, steps) [PASS_##name] = (steps),
#include "opt/passes.def"
};

/* Passes that feed one another are run in turn until none of them finds anything; this many rounds are
 * plenty. */
enum { MOST_ROUNDS = 10 };

typedef struct Step {
    unsigned which;
    bool repeat;
} Step;

/* Calls are not inlined here: the frontend builds one only for a function that asks not to be inlined. */
static const Step pipeline[] = {
    /* What the frontend wrote down is full of constants, repeated index arithmetic and values no one uses. */
    {SIMPLIFY, true},
    {LOADS, false},
    {MAPS, false}, /* only where code may rest on extents of launches */
    {BLOCKS, false},
    /* Values that addresses and masks share are one value now, and loops are still loops, whose bounds bound what they
     * carry. */
    {SIGNS, false},
    {DEPTHS, false}, /* only where launches are known by their grids */
    {WIDEN, false},  /* only where offsets do not fit */
    /* Bounds are as constant now as they get, and each copy of a body is yet to be simplified for its
     * iteration. */
    {UNROLL, false},
    {SIMPLIFY, true},
    {IMPROVE, true},
};

bool tt_opt_run_pass(Module *module, OptPass pass) { return tt_run_pass(module, &table, (int)pass); }

static bool run_once(Module *module, unsigned step)
{
    bool changed = false;
    for (unsigned i = 0; i < TT_COUNT(steps_of); i++)
        if (steps_of[i] & step)
            changed |= tt_opt_run_pass(module, (OptPass)i);
    return changed;
}

static void run_step(Module *module, const Step *step)
{
    for (int round = 0; round < (step->repeat ? MOST_ROUNDS : 1); round++)
        if (!run_once(module, step->which))
            break;
}

bool tt_expand_blocks(Module *module) { return run_once(module, BLOCKS); }

/* What is made of blocks is as the frontend would have written it down. */
static void expand_blocks(Module *module)
{
    static const Step simplify = {SIMPLIFY, true};
    if (tt_expand_blocks(module))
        run_step(module, &simplify);
}

/* Between marks and WIDEN: whether offsets fit. */
static bool choose_facts(Module *module, LaunchChoice *choice)
{
    unsigned facts = choice ? choice->find_facts(choice, module->functions) : VOUCHED_FACTS;
    tt_forget_signs(module->functions, facts);
    tt_settle_depths(module->functions, facts);
    if (tt_settle_blocks(module->functions, facts))
        expand_blocks(module);
    return facts & FACT_FITS;
}

static bool is_asked_for(Module *module, unsigned step, LaunchChoice *choice)
{
    switch (step) {
    case MAPS:
        return choice && choice->copies_blocks;
    case DEPTHS:
        return choice && choice->counts_programs;
    case WIDEN:
        return !choose_facts(module, choice);
    default:
        return true;
    }
}

void tt_run_pipeline(Module *module, LaunchChoice *choice)
{
    for (unsigned i = 0; i < TT_COUNT(pipeline); i++) {
        if (pipeline[i].which == BLOCKS)
            expand_blocks(module);
        else if (is_asked_for(module, pipeline[i].which, choice))
            run_step(module, &pipeline[i]);
    }
    tt_passes_done(module, &table);
}

void tt_simplify(Module *module) { run_once(module, SIMPLIFY); }

void tt_opt_run_pass_named(Module *module, const char *name)
{
    tt_opt_run_pass(module, (OptPass)tt_find_pass(&table, name));
    tt_passes_done(module, &table);
}
