/* opt: machine-independent passes and the pass manager. A pass is one file with one public function that returns
 * whether it changed anything. */
#pragma once
#include "analysis/ranges.h"

/* What the code of a kernel may rest on, a set of LaunchFacts; asked once its IR is simplified, before it is optimised. */
typedef struct LaunchChoice {
    bool counts_programs; /* may the code hang on FACTS_OF_GRID? */
    bool copies_blocks;   /* and on FACT_MAPS? */
    unsigned (*find_facts)(struct LaunchChoice *choice, const Function *kernel);
} LaunchChoice;
/* Runs the machine-independent pipeline (the table in pipeline.c). `choice` NULL: on what callers vouch for. */
void tt_run_pipeline(Module *module, LaunchChoice *choice);
/* Only makes pointers and masks of blocks, for whoever runs IR as the frontend builds it. */
bool tt_expand_blocks(Module *module);
/* For the option `debug`, before the pipeline: checks each access. Adds parameters: see check_bounds.c. */
void tt_check_bounds(Module *module);
/* Runs one of these passes by its name, for tests; TT_USER_ERROR when there is none. */
void tt_opt_run_pass_named(Module *module, const char *name);
