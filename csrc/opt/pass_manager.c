/* What runs passes: each with scratch memory of its own, verified, dumped and timed if somebody asks.
 *
 * TRITON_VERIFY=1 verifies the module after each pass. TRITON_DUMP=after:NAME (or after:all) writes it to standard error
 * after each run of that pass that changed something; after:opt, after:gpu and after:cpu write the result of all passes of
 * a table. TRITON_TIMING=1 writes how often each pass ran and how long it took. */
#include "opt/pass.h"
#include <stdio.h>
#include <stdlib.h>

/* Names of passes, of all targets: what is asked of one target's may well not run for another. */
static const char *const names[] = {
#define OPT_PASS(name, steps) #name,
#define GPU_PASS(name, stage) #name,
#define CPU_PASS(name) #name,
#include "opt/passes.def"
    "all", "opt", "gpu", "cpu"};
enum { NAMES = TT_COUNT(names), TABLES = 4 /* the last ones are no passes */ };

typedef struct Timing {
    int runs, changes;
    double milliseconds;
} Timing;

typedef struct PassManager {
    Module *module;
    Arena scratch;
    bool is_timing;
    const char *dump;      /* a name to dump after, or NULL */
    Timing timings[NAMES]; /* since the last result */
    double inner;          /* milliseconds of passes that the one under way had run */
} PassManager;

/* ---- what is asked for ---------------------------------------------------------------------------------------------- */

static int name_index(const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static _Noreturn void refuse_dump(Arena *arena, const char *wanted, const char *name)
{
    const char *closest = tt_closest_word(name, names, NAMES);
    Text list = {.arena = arena};
    for (int i = 0; i < NAMES; i++)
        tt_text_add(&list, "%s%s", i ? ", " : "", names[i]);
    const char *question = closest ? tt_arena_format(arena, "did you mean 'after:%s'? ", closest) : "";
    tt_error_with_remedy(NULL, tt_arena_format(arena, "%sit can be after: %s", question, list.data),
                         "TRITON_DUMP=%s: there is no such pass", wanted);
}

static const char *wanted_dump(Arena *arena)
{
    const char *wanted = tt_variable("TRITON_DUMP"), *name = wanted;
    if (!wanted || !*wanted)
        return NULL;
    if (!strncmp(wanted, "after:", 6))
        name += 6;
    if (name == wanted || name_index(name) < 0)
        refuse_dump(arena, wanted, name);
    return name;
}

bool tt_verifies_passes(void) { return tt_is_set("TRITON_VERIFY"); }

/* ---- what is said --------------------------------------------------------------------------------------------------- */

/* The one place in the compiler that writes to the terminal: somebody asked for it. */
static void say(const char *text) { fwrite(text, 1, strlen(text), stderr); }

static void dump(PassManager *manager, const char *name)
{
    Arena *scratch = &manager->scratch;
    say(tt_arena_format(scratch, "// after %s\n%s\n", name, tt_print_module(manager->module, scratch, 0)));
}

static void say_timings(PassManager *manager, const char *table)
{
    double all = 0;
    for (int i = 0; i < NAMES; i++)
        all += manager->timings[i].milliseconds;
    Text text = {.arena = &manager->scratch};
    tt_text_add(&text, "// %s passes of %s: %.3f ms\n", table, manager->module->functions->name, all);
    for (int i = 0; i < NAMES; i++) {
        const Timing *timing = &manager->timings[i];
        if (timing->runs)
            tt_text_add(&text, "//   %-16s %8.3f ms, %d of %d runs changed something\n", names[i],
                        timing->milliseconds, timing->changes, timing->runs);
    }
    say(text.data);
    memset(manager->timings, 0, sizeof manager->timings);
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

/* The scratch arena is released with the module's at the latest, so that unwinding loses nothing. */
static void release_scratch(void *manager) { tt_arena_release(&((PassManager *)manager)->scratch); }

static PassManager *manager_of(Module *module)
{
    if (module->passes)
        return module->passes;
    PassManager *manager = TT_NEW(module->arena, PassManager);
    manager->module = module;
    manager->dump = wanted_dump(module->arena);
    manager->is_timing = tt_is_set("TRITON_TIMING");
    tt_arena_on_release(module->arena, release_scratch, manager);
    return module->passes = manager;
}

static void verify(PassManager *manager, const PassTable *table, const char *pass)
{
    Module *module = manager->module;
    const char *failures = tt_verify(module, module->arena);
    if (!failures && table->verify)
        failures = table->verify(module, module->arena);
    if (failures)
        tt_bug("the pass '%s' broke the IR:\n%s", pass, failures);
}

bool tt_run_pass(Module *module, const PassTable *table, int index)
{
    PassManager *manager = manager_of(module);
    const Pass *pass = &table->passes[index];
    double start = tt_milliseconds(), outer = manager->inner;
    manager->inner = 0;
    ArenaMark mark = tt_arena_mark(&manager->scratch);
    bool changed = pass->run(module, table->options, &manager->scratch);
    module->stage = TT_MAX(module->stage, pass->stage);
    double took = tt_milliseconds() - start;
    Timing *timing = &manager->timings[name_index(pass->name)];
    timing->runs++;
    timing->changes += changed;
    timing->milliseconds += took - manager->inner;
    manager->inner = outer + took;
    if (tt_verifies_passes())
        verify(manager, table, pass->name);
    if (changed && manager->dump && (!strcmp(manager->dump, pass->name) || !strcmp(manager->dump, "all")))
        dump(manager, pass->name);
    tt_arena_reset(&manager->scratch, mark);
    return changed;
}

void tt_passes_done(Module *module, const PassTable *table)
{
    PassManager *manager = manager_of(module);
    if (manager->dump && !strcmp(manager->dump, table->name))
        dump(manager, table->name);
    if (manager->is_timing)
        say_timings(manager, table->name);
    tt_arena_release(&manager->scratch);
}

int tt_find_pass(const PassTable *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (!strcmp(table->passes[i].name, name))
            return i;
    tt_error(NULL, "there is no pass '%s' of the %s passes", name, table->name);
}

void tt_run_passes(Module *module, const PassTable *table, const char *last)
{
    int end = last ? tt_find_pass(table, last) + 1 : table->count;
    for (int i = 0; i < end; i++)
        tt_run_pass(module, table, i);
    tt_passes_done(module, table);
}
