/* The tables of operations and attributes, and attribute lists. */
#include "ir/ir.h"

#define A(name) (1ull << ATTR_##name)
_Static_assert(TT_ATTR_KEYS <= 64, "OpInfo.attrs has a bit for each attribute");

const OpInfo tt_op_infos[TT_OPCODES] = {
#define OP(name, lowest, highest, results, control, rule, traits, stages, attrs, meaning)                    \
    [OP_##name] = {#name, lowest, highest, results, control, rule, traits, stages, attrs, meaning},
#include "ir/ops.def"
};

int tt_region_count(Control control)
{
    static const int counts[] = {[NO_REGION] = 0, [COMBINE] = 1, [IF] = 2, [FOR] = 1, [WHILE] = 2};
    return counts[control];
}

Opcode tt_find_opcode(const char *name)
{
    int opcode = 0;
    while (opcode < TT_OPCODES && strcmp(tt_op_infos[opcode].name, name))
        opcode++;
    return (Opcode)opcode;
}

Opcode tt_find_function_opcode(const char *name)
{
    Opcode opcode = tt_find_opcode(name);
    return opcode < TT_OPCODES && tt_op_infos[opcode].traits & FUNCTION ? opcode : TT_OPCODES;
}

const char *const tt_attr_names[TT_ATTR_KEYS] = {
#define ATTR(name, kind) #name,
#include "ir/attrs.def"
};

const AttrKind tt_attr_kinds[TT_ATTR_KEYS] = {
#define ATTR(name, kind) TT_ATTR_##kind,
#include "ir/attrs.def"
};

Attr *tt_find_attr(const Op *op, AttrKey key)
{
    for (Attr *attr = op->attrs; attr; attr = attr->next)
        if (attr->key == key)
            return attr;
    return NULL;
}

bool tt_is_checked(const Op *op, int d)
{
    const Attr *checked = tt_find_attr(op, ATTR_checked);
    for (int i = 0; checked && i < checked->count; i++)
        if (checked->ints[i] == d)
            return true;
    return false;
}

int64_t tt_int_attr(const Op *op, AttrKey key, int64_t otherwise)
{
    Attr *attr = tt_find_attr(op, key);
    return attr ? attr->i : otherwise;
}

const char *tt_string_attr(const Op *op, AttrKey key, const char *otherwise)
{
    Attr *attr = tt_find_attr(op, key);
    return attr ? attr->s : otherwise;
}

static Attr *new_attr(Module *module, AttrKey key, Attr *next)
{
    Attr *attr = TT_NEW(module->arena, Attr);
    attr->key = key;
    attr->next = next;
    return attr;
}

Attr *tt_attr_int(Module *module, AttrKey key, int64_t value, Attr *next)
{
    Attr *attr = new_attr(module, key, next);
    attr->i = value;
    return attr;
}

Attr *tt_attr_float(Module *module, AttrKey key, double value, Attr *next)
{
    Attr *attr = new_attr(module, key, next);
    attr->f = value;
    return attr;
}

Attr *tt_attr_ints(Module *module, AttrKey key, const int64_t *values, int count, Attr *next)
{
    Attr *attr = new_attr(module, key, next);
    attr->ints = tt_arena_copy(module->arena, values, sizeof(int64_t) * (size_t)count);
    attr->count = count;
    return attr;
}

Attr *tt_parameter_attrs(Module *module, int64_t divisibility)
{
    Attr *attrs = divisibility < 0 ? tt_attr_int(module, ATTR_negative, 1, NULL) : NULL;
    if (divisibility < 0)
        divisibility = -divisibility;
    return divisibility > 1 ? tt_attr_ints(module, ATTR_divisibility, &divisibility, 1, attrs) : attrs;
}

Attr *tt_attr_string(Module *module, AttrKey key, const char *value, Attr *next)
{
    Attr *attr = new_attr(module, key, next);
    attr->s = tt_intern(module, value);
    return attr;
}

void tt_set_attr(Op *op, Attr *attr)
{
    Attr **link = &op->attrs;
    while (*link && (*link)->key != attr->key)
        link = &(*link)->next;
    attr->next = *link ? (*link)->next : NULL;
    *link = attr;
}

void tt_remove_attr(Op *op, AttrKey key)
{
    Attr **link = &op->attrs;
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
}

Attr *tt_copy_attrs(Module *module, const Attr *attrs)
{
    Attr *copy = NULL, **link = &copy;
    for (; attrs; attrs = attrs->next, link = &(*link)->next) {
        *link = tt_arena_copy(module->arena, attrs, sizeof *attrs);
        (*link)->next = NULL;
    }
    return copy;
}

static bool same_attr(const Attr *a, const Attr *b)
{
    switch (tt_attr_kinds[a->key]) {
    case TT_ATTR_INTS:
        return a->count == b->count && !memcmp(a->ints, b->ints, sizeof(int64_t) * (size_t)a->count);
    case TT_ATTR_STRING:
        return !strcmp(a->s, b->s);
    default:
        return a->i == b->i; /* SCALAR floats by their bits: -0 and 0 differ */
    }
}

bool tt_same_attrs_but(const Op *a, const Op *b, int ignored)
{
    int count_a = 0, count_b = 0;
    for (Attr *attr = b->attrs; attr; attr = attr->next)
        count_b += (int)attr->key != ignored;
    for (Attr *attr = a->attrs; attr; attr = attr->next) {
        Attr *other = tt_find_attr(b, attr->key);
        if ((int)attr->key == ignored)
            continue;
        if (!other || !same_attr(attr, other))
            return false;
        count_a++;
    }
    return count_a == count_b;
}

bool tt_same_attrs(const Op *a, const Op *b) { return tt_same_attrs_but(a, b, -1); }
