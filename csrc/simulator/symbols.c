/* The names by which generated code calls the machine. */
#define _GNU_SOURCE
#include "simulator/simulator.h"
#include <dlfcn.h>

void *tt_sim_symbol(const char *name)
{
#define FUNCTION(name)                                                                                       \
    {                                                                                                        \
        #name, (void *)name                                                                                  \
    }
    static const struct {
        const char *name;
        void *address;
    } functions[] = {
        FUNCTION(tt_sim_access),
        FUNCTION(tt_sim_acquired),
        FUNCTION(tt_sim_await),
        FUNCTION(tt_sim_barrier),
        FUNCTION(tt_sim_clock),
        FUNCTION(tt_sim_copy_async),
        FUNCTION(tt_sim_copy_block),
        FUNCTION(tt_sim_copy_commit),
        FUNCTION(tt_sim_copy_wait),
        FUNCTION(tt_sim_expect),
        FUNCTION(tt_sim_fail_check),
        FUNCTION(tt_sim_fence_proxy),
        FUNCTION(tt_sim_load_matrices),
        FUNCTION(tt_sim_mma),
        FUNCTION(tt_sim_print),
        FUNCTION(tt_sim_release),
        FUNCTION(tt_sim_set_arrivals),
        FUNCTION(tt_sim_shuffle),
        FUNCTION(tt_sim_stop_after_failure),
        FUNCTION(tt_sim_store),
        FUNCTION(tt_sim_store_matrices),
        FUNCTION(tt_sim_warp_sync),
        FUNCTION(tt_sim_wgmma),
        FUNCTION(tt_sim_wgmma_begin),
        FUNCTION(tt_sim_wgmma_commit),
        FUNCTION(tt_sim_wgmma_wait),
        {"__truncsfbf2", (void *)tt_sim_float_to_bf16},
        {"__truncdfbf2", (void *)tt_sim_double_to_bf16},
        {"__truncdfhf2", (void *)tt_sim_double_to_f16},
    };
#undef FUNCTION
    for (size_t i = 0; i < TT_COUNT(functions); i++)
        if (!strcmp(functions[i].name, name))
            return functions[i].address;
    return dlsym(RTLD_DEFAULT, name); /* of the mathematical library */
}
