/* Sums in fp16. Tensor cores have them in pairs, two neighbours of a row in a word, and so are they carried through loops and
 * branches: taken apart there, they would be read while a product is under way. */
#include "gpu/simt.h"

static void note_pairs(Op *op, void *context)
{
    Simt *s = context;
    if (!tt_is_on_tensor_cores(op) || tt_element(op->results[0]->type)->kind != TT_F16)
        return;
    const LinearLayout *layout = op->results[0]->layout;
    if (layout->in_bits[LAYOUT_REGISTER] && layout->bases[0] == 1) /* else the tile is one column */
        *tt_map_slot_ptr(&s->pairs, layout) = s;
}

void simt_find_pairs(Simt *s, const Function *function) { tt_walk(function->body, note_pairs, s); }

static bool is_in_pairs(Simt *s, const Value *value)
{
    return value->layout && tt_element(value->type)->kind == TT_F16 &&
           tt_map_find_ptr(&s->pairs, value->layout);
}

Tile *simt_to_words(Simt *s, const Value *value, Tile *tile)
{
    if (!is_in_pairs(s, value))
        return tile;
    Access word = simt_register_access(4);
    Tile *words = simt_new_tile(s, tile->count / 2);
    simt_pack(s, tile->at, tile->count, 2, &word, words->at);
    return words;
}

Tile *simt_from_words(Simt *s, const Value *value, Tile *words)
{
    if (!is_in_pairs(s, value))
        return words;
    Access word = simt_register_access(4);
    Tile *tile = simt_new_tile(s, 2 * words->count);
    simt_unpack(s, words->at, &word, tile->count, 2, s->f16, tile->at);
    return tile;
}
