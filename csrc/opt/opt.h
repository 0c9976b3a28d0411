/* opt: machine-independent passes and the pass manager. A pass is one file with one public function that returns
 * whether it changed anything. */
#pragma once
#include "analysis/analysis.h"

/* Whether the offsets of a kernel are to be computed in 64 bits; asked once its IR is simplified, before it is optimised.
 */
typedef struct OffsetChoice {
    bool (*must_widen)(struct OffsetChoice *choice, const Function *kernel);
} OffsetChoice;
/* Runs the machine-independent pipeline (the table in pipeline.c). `choice` NULL: offsets stay as they were written. */
void tt_run_pipeline(Module *module, OffsetChoice *choice);
/* For the option `debug`, before the pipeline: checks each access. Adds parameters: see check_bounds.c. */
void tt_check_bounds(Module *module);
/* Runs one of these passes by its name, for tests; TT_USER_ERROR when there is none. */
void tt_opt_run_pass_named(Module *module, const char *name);
