/* Choice points: places where a pass could do one of several things, all of them right. It names the point and the values
 * there are; a tuner that finds them in a compiled module may ask for others. */
#include "ir/ir.h"

#include <stdlib.h>

/* "rows=4 wgmma=0": the value after `name`, or NULL. */
static const char *find_asked(const char *asked, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = asked; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (!strncmp(at, name, length) && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

static bool is_among(const int64_t *values, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

static Choice *find_choice(const Module *module, const char *name, size_t length)
{
    for (int i = 0; i < module->choices.count; i++)
        if (!strncmp(module->choices.data[i].name, name, length) && !module->choices.data[i].name[length])
            return &module->choices.data[i];
    return NULL;
}

int64_t tt_choose(Module *module, const char *name, const int64_t *values, int count, int64_t own)
{
    Choice *choice = find_choice(module, name, strlen(name));
    if (!choice) {
        tt_push(module->arena, module->choices, ((Choice){.name = name, .own = own}));
        choice = &module->choices.data[module->choices.count - 1];
    }
    for (int i = 0; i < count; i++)
        if (choice->count < TT_MOST_CHOICES && !is_among(choice->values, choice->count, values[i]))
            choice->values[choice->count++] = values[i];
    const char *text = find_asked(module->asked_choices, name);
    int64_t asked = text ? strtoll(text, NULL, 10) : own;
    return is_among(values, count, asked) ? asked : own;
}

void tt_check_choices(const Module *module)
{
    for (const char *at = module->asked_choices; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        size_t length = strcspn(at, "= ");
        if (!*at)
            break;
        const Choice *choice = at[length] == '=' ? find_choice(module, at, length) : NULL;
        if (choice && is_among(choice->values, choice->count, strtoll(at + length + 1, NULL, 10)))
            continue;
        Text text = {.arena = module->arena};
        for (int i = 0; i < module->choices.count; i++)
            for (int j = 0; j < module->choices.data[i].count; j++)
                tt_text_add(&text, "%s%s=%lld", i + j ? ", " : "", module->choices.data[i].name,
                            (long long)module->choices.data[i].values[j]);
        tt_error_with_remedy(NULL,
                             text.data ? tt_arena_format(module->arena, "there are: %s", text.data) : NULL,
                             "the compiler has no choice '%.*s' for this kernel", (int)strcspn(at, " "), at);
    }
}
