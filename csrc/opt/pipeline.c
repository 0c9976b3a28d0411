/* The machine-independent pipeline, as a table that one can see at once. */
#include "opt/pass.h"

/* Each function of the module by itself. */
#define OPT_PASS(name)                                                                                       \
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
#define OPT_PASS(name) [PASS_##name] = {#name, run_##name, STAGE_TILES},
#include "opt/passes.def"
};

static const PassTable table = {"opt", passes, TT_COUNT(passes), NULL, NULL};

/* Passes that feed one another are run in turn until none of them finds anything; this many rounds are
 * plenty. */
enum { MOST_ROUNDS = 10 };

typedef struct Step {
    OptPass passes[6];
    int count;
    bool repeat;
    bool is_chosen; /* only if the launch needs it */
} Step;

/* Calls are not inlined here: the frontend builds one only for a function that asks not to be inlined. */
static const Step pipeline[] = {
    /* What the frontend wrote down is full of constants, repeated index arithmetic and values no one uses. */
    {{PASS_canonicalize, PASS_cse, PASS_dce}, 3, true, false},
    /* Values that addresses and masks share are one value now, and loops are still loops, whose bounds bound what they
     * carry. */
    {{PASS_widen}, 1, false, true},
    /* Bounds are as constant now as they get, and each copy of a body is yet to be simplified for its
     * iteration. */
    {{PASS_unroll}, 1, false, false},
    {{PASS_canonicalize, PASS_cse, PASS_dce}, 3, true, false},
    /* Combine looks for patterns of simplified operations. Induction makes of a carried tile an invariant one
     * and a scalar, which canonicalize moves into base addresses, dce forgets the tile that nothing carries
     * any more, and licm takes out what now does not change; all of which may show more. */
    {{PASS_combine, PASS_induction, PASS_canonicalize, PASS_cse, PASS_dce, PASS_licm}, 6, true, false},
};

bool tt_opt_run_pass(Module *module, OptPass pass) { return tt_run_pass(module, &table, (int)pass); }

static void run_step(Module *module, const Step *step)
{
    for (int round = 0; round < (step->repeat ? MOST_ROUNDS : 1); round++) {
        bool changed = false;
        for (int i = 0; i < step->count; i++)
            changed |= tt_opt_run_pass(module, step->passes[i]);
        if (!changed)
            break;
    }
}

void tt_run_pipeline(Module *module, OffsetChoice *choice)
{
    for (unsigned i = 0; i < TT_COUNT(pipeline); i++)
        if (!pipeline[i].is_chosen || (choice && choice->must_widen(choice, module->functions)))
            run_step(module, &pipeline[i]);
    tt_passes_done(module, &table);
}

void tt_simplify(Module *module)
{
    static const OptPass simplify[] = {PASS_canonicalize, PASS_cse, PASS_dce};
    for (unsigned i = 0; i < TT_COUNT(simplify); i++)
        tt_opt_run_pass(module, simplify[i]);
}

void tt_opt_run_pass_named(Module *module, const char *name)
{
    tt_opt_run_pass(module, (OptPass)tt_find_pass(&table, name));
    tt_passes_done(module, &table);
}
