/* Layouts of values: made once per module, so that equal layouts are equal pointers, and their text,
 *   #0 = layout<16x32> {registers = [(0,1), (0,2)], lanes = [...], warps = [...]}
 * where each place bit has the coordinates that it adds; all zeros is a copy. */
#include "ir/ir.h"

static const char *const input_names[LAYOUT_INPUTS] = {"registers", "lanes", "warps", "blocks"};

const LinearLayout *tt_intern_layout(Module *module, const LinearLayout *layout)
{
    LinearLayout key;
    memset(&key, 0, sizeof key); /* padding and unused bases too: the key is compared byte by byte */
    key.rank = layout->rank;
    memcpy(key.out_bits, layout->out_bits, sizeof(int) * (size_t)layout->rank);
    memcpy(key.in_bits, layout->in_bits, sizeof key.in_bits);
    int total = tt_layout_in_total(layout);
    memcpy(key.bases, layout->bases, sizeof(uint64_t) * (size_t)total);
    size_t size = offsetof(LinearLayout, bases) + sizeof(uint64_t) * (size_t)total;
    void **slot = tt_map_slot(&module->layouts, &key, size);
    if (!*slot)
        *slot = tt_arena_copy(module->arena, &key, sizeof key);
    return *slot;
}

static void print_base(Text *text, const LinearLayout *layout, uint64_t base)
{
    int64_t coordinates[TT_MAX_RANK];
    tt_layout_coordinates(layout, base, coordinates);
    if (layout->rank == 1) {
        tt_text_add(text, "%lld", (long long)coordinates[0]);
        return;
    }
    for (int i = 0; i < layout->rank; i++)
        tt_text_add(text, "%s%lld", i ? "," : "(", (long long)coordinates[i]);
    tt_text_add_n(text, ")", 1);
}

void tt_print_layout(Text *text, const LinearLayout *layout)
{
    tt_text_add(text, "layout<");
    for (int i = 0; i < layout->rank; i++)
        tt_text_add(text, "%s%lld", i ? "x" : "", 1ll << layout->out_bits[i]);
    tt_text_add(text, "> {");
    for (int input = 0, at = 0; input < LAYOUT_INPUTS; input++) {
        if (input == LAYOUT_BLOCK && !layout->in_bits[input])
            continue;
        tt_text_add(text, "%s%s = [", input ? ", " : "", input_names[input]);
        for (int bit = 0; bit < layout->in_bits[input]; bit++) {
            tt_text_add(text, "%s", bit ? ", " : "");
            print_base(text, layout, layout->bases[at++]);
        }
        tt_text_add_n(text, "]", 1);
    }
    tt_text_add_n(text, "}", 1);
}

int tt_layout_input_named(const char *name)
{
    for (int input = 0; input < LAYOUT_INPUTS; input++)
        if (!strcmp(name, input_names[input]))
            return input;
    return -1;
}

LinearLayout tt_padded_layout(const Type *type)
{
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        shape[i] = tt_next_pow2(type->shape[i]);
    return tt_layout_empty(shape, type->rank);
}

bool tt_layout_fits(const LinearLayout *layout, const Type *type)
{
    if ((!tt_is_tile(type) && !tt_is_buffer(type)) || layout->rank != type->rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (tt_next_pow2(type->shape[i]) != 1ll << layout->out_bits[i])
            return false;
    return true;
}
