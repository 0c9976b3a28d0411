/* opt: machine-independent passes and the pass manager. A pass is one file with one public function that returns
 * whether it changed anything. */
#pragma once
#include "analysis/analysis.h"

/* Runs the machine-independent pipeline (the table in pipeline.c), verifying after each pass when TRITON_VERIFY=1. */
void tt_run_pipeline(Module *module);
/* For the option `debug`, before the pipeline: checks each access. Adds parameters: see check_bounds.c. */
void tt_check_bounds(Module *module);
/* Runs one pass by its name in the table; TT_USER_ERROR when there is none. Returns whether anything changed. */
bool tt_run_pass(Module *module, const char *name);
