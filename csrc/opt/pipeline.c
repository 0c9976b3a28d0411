/* The machine-independent pipeline, as a table that one can see at once, and what runs it.
 *
 * TRITON_VERIFY=1 verifies the module after each pass. TRITON_DUMP=after:NAME (or after:all) writes the
 * module to standard error after each run of that pass that changed something; after:pipeline writes the
 * result. */
#include "opt/pass.h"
#include <stdio.h>
#include <stdlib.h>

typedef bool PassFunction(Function *function, Arena *scratch);

typedef struct Pass {
    const char *name;
    PassFunction *run;
} Pass;

static const Pass passes[] = {
    {"canonicalize", tt_opt_canonicalize},
    {"cse", tt_opt_cse},
    {"dce", tt_opt_dce},
    {"unroll", tt_opt_unroll},
    {"combine", tt_opt_combine},
    {"licm", tt_opt_licm},
    {"induction", tt_opt_induction},
};

/* Passes that feed one another are run in turn until none of them finds anything; this many rounds are
 * plenty. */
enum { MOST_ROUNDS = 10 };

typedef struct Step {
    const char *passes[6];
    bool repeat;
} Step;

/* Calls are not inlined here: the frontend builds one only for a function that asks not to be inlined. */
static const Step pipeline[] = {
    /* What the frontend wrote down is full of constants, repeated index arithmetic and values no one uses. */
    {{"canonicalize", "cse", "dce"}, true},
    /* Bounds are as constant now as they get, and each copy of a body is yet to be simplified for its
     * iteration. */
    {{"unroll"}, false},
    {{"canonicalize", "cse", "dce"}, true},
    /* Combine looks for patterns of simplified operations. Induction makes of a carried tile an invariant one
     * and a scalar, which canonicalize moves into base addresses, dce forgets the tile that nothing carries
     * any more, and licm takes out what now does not change; all of which may show more. */
    {{"combine", "induction", "canonicalize", "cse", "dce", "licm"}, true},
};

typedef struct Manager {
    Module *module;
    Arena scratch;
    bool verify;
    const char *dump; /* the pass to dump after, or NULL */
} Manager;

static void release_scratch(void *manager) { tt_arena_release(&((Manager *)manager)->scratch); }

static const Pass *find_pass(const char *name)
{
    for (unsigned i = 0; i < TT_COUNT(passes); i++)
        if (!strcmp(passes[i].name, name))
            return &passes[i];
    return NULL;
}

/* The one place in the compiler that writes to the terminal: somebody asked for it. */
static void dump(const Manager *manager, const char *name)
{
    if (!manager->dump || (strcmp(manager->dump, name) && (strcmp(manager->dump, "all") || !find_pass(name))))
        return;
    Arena *arena = manager->module->arena;
    const char *text = tt_print_module(manager->module, arena, 0);
    text = tt_arena_format(arena, "// after %s\n%s\n", name, text);
    fwrite(text, 1, strlen(text), stderr);
}

static bool run_pass(Manager *manager, const Pass *pass)
{
    bool changed = false;
    TT_FOR_FUNCTIONS(function, manager->module)
    {
        ArenaMark mark = tt_arena_mark(&manager->scratch);
        changed |= pass->run(function, &manager->scratch);
        tt_arena_reset(&manager->scratch, mark);
    }
    const char *failures = manager->verify ? tt_verify(manager->module, manager->module->arena) : NULL;
    if (failures)
        tt_bug("the pass '%s' broke the IR:\n%s", pass->name, failures);
    if (changed)
        dump(manager, pass->name);
    return changed;
}

static bool run_step(Manager *manager, const Step *step)
{
    bool changed = false;
    for (int round = 0; round < (step->repeat ? MOST_ROUNDS : 1); round++) {
        bool any = false;
        for (unsigned i = 0; i < TT_COUNT(step->passes) && step->passes[i]; i++)
            any |= run_pass(manager, find_pass(step->passes[i]));
        changed |= any;
        if (!any)
            break;
    }
    return changed;
}

/* The scratch arena is released with the module's at the latest, so that unwinding loses nothing. */
static Manager *new_manager(Module *module)
{
    Manager *manager = TT_NEW(module->arena, Manager);
    manager->module = module;
    const char *verify = getenv("TRITON_VERIFY"), *dump_after = getenv("TRITON_DUMP");
    manager->verify = verify && !strcmp(verify, "1");
    if (dump_after && !strncmp(dump_after, "after:", 6))
        manager->dump = dump_after + 6;
    tt_arena_on_release(module->arena, release_scratch, manager);
    return manager;
}

void tt_run_pipeline(Module *module)
{
    Manager *manager = new_manager(module);
    for (unsigned i = 0; i < TT_COUNT(pipeline); i++)
        run_step(manager, &pipeline[i]);
    dump(manager, "pipeline");
    tt_arena_release(&manager->scratch);
}

bool tt_run_pass(Module *module, const char *name)
{
    const Pass *pass = find_pass(name);
    if (!pass)
        tt_error(NULL, "there is no pass '%s'", name);
    Manager *manager = new_manager(module);
    bool changed = run_pass(manager, pass);
    tt_arena_release(&manager->scratch);
    return changed;
}
