/* Flags of the environment, read as `triton.knobs` reads them (runtime/environment.py). */
#include "support/support.h"

#include <stdlib.h>
#include <strings.h>

bool tt_is_set(const char *variable)
{
    static const char *const off[] = {"", "0", "n", "no", "off", "false"};
    const char *text = getenv(variable);
    bool is_set = text != NULL;
    for (size_t i = 0; is_set && i < TT_COUNT(off); i++)
        is_set = strcasecmp(text, off[i]) != 0;
    return is_set;
}
