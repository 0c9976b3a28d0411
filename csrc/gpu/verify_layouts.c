/* Checks that every tile has a layout of its shape, and that the layouts of an operation's values follow from each
 * other as its lowering takes for granted. */
#include "gpu/passes.h"

typedef struct Checker {
    Arena *arena;
    Map notes; /* Op* -> text */
    bool failed;
} Checker;

static void fail(Checker *c, const Op *op, const char *format, int number)
{
    void **slot = tt_map_slot_ptr(&c->notes, op);
    *slot = tt_arena_format(c->arena, "%s%s", *slot ? (char *)*slot : "",
                            tt_arena_format(c->arena, format, number));
    c->failed = true;
}

static bool has_layout(const Value *value)
{
    return !tt_is_tile(value->type) || (value->layout && tt_layout_fits(value->layout, value->type) &&
                                        tt_layout_is_surjective(value->layout));
}

static void expect_same(Checker *c, const Op *op, const Value *value, const LinearLayout *layout, int number)
{
    if (tt_is_tile(value->type) && value->layout != layout)
        fail(c, op, "operand %d has another layout than the rest\n", number);
}

static bool keeps_one_layout(const Op *op) { return tt_has(op, ELEMENTWISE | ONE_LAYOUT | ACCESS); }

static void check_shape(Checker *c, const Op *op)
{
    const Value *result = op->results[0];
    for (int i = 0; i < op->operand_count; i++) {
        const Value *operand = tt_operand(op, i);
        if (!operand->layout || !result->layout)
            continue;
        bool exact = tt_layout_forward(op, i, operand->layout) == result->layout ||
                     tt_layout_backward(op, i, result->layout) == operand->layout;
        bool may_move = op->opcode == OP_reshape || op->opcode == OP_slice || op->opcode == OP_cat;
        if (!exact && !may_move)
            fail(c, op, "the result's layout does not follow from that of operand %d\n", i);
    }
}

/* What a loop or branch passes from one place to another. */
static void check_control(Checker *c, const Op *op)
{
    int first = op->operand_count - op->result_count;
    for (int i = 0; i < op->result_count; i++) {
        const LinearLayout *layout = op->results[i]->layout;
        if (tt_is_loop(op))
            expect_same(c, op, tt_operand(op, first + i), layout, first + i);
        for (int r = 0; r < op->region_count; r++) {
            const Region *region = op->regions[r];
            if (region->last->opcode == OP_yield)
                expect_same(c, region->last, tt_operand(region->last, i), layout, i);
            if (tt_is_loop(op))
                expect_same(c, op, region->args[region->arg_count - op->result_count + i], layout, first + i);
        }
    }
}

static void check_op(Op *op, void *context)
{
    Checker *c = context;
    for (int i = 0; i < op->result_count; i++)
        if (!has_layout(op->results[i])) {
            fail(c, op, "result %d has no layout of its shape\n", i);
            return;
        }
    for (int i = 0; i < op->operand_count; i++)
        if (!has_layout(tt_operand(op, i)))
            return; /* reported where it is made */
    const LinearLayout *first = op->operand_count ? tt_operand(op, 0)->layout : NULL;
    if (tt_is_control(op)) {
        check_control(c, op);
    } else if (op->opcode == OP_reduce || op->opcode == OP_extract) {
        for (int i = 1; i < op->operand_count && op->opcode == OP_reduce; i++)
            expect_same(c, op, tt_operand(op, i), first, i);
        if (op->results[0]->layout != tt_layout_forward(op, 0, first))
            fail(c, op, "the result's layout does not follow from that of operand %d\n", 0);
    } else if (op->opcode == OP_dot || op->opcode == OP_wgmma) {
        expect_same(c, op, tt_operand(op, 2), op->results[0]->layout, 2);
        for (int i = 0; i < 2 && tt_is_on_tensor_cores(op); i++)
            expect_same(c, op, tt_operand(op, i), tt_fragment_layout(op->parent->function->module, op, i), i);
    } else if (op->opcode == OP_gather) {
        expect_same(c, op, tt_operand(op, 1), op->results[0]->layout, 1);
    } else if (keeps_one_layout(op) && op->operand_count) {
        for (int i = 1; i < op->operand_count; i++)
            expect_same(c, op, tt_operand(op, i), first, i);
        for (int i = 0; i < op->result_count; i++)
            expect_same(c, op, op->results[i], first, -1);
    } else if (tt_has(op, SHAPE) && op->opcode != OP_splat) {
        check_shape(c, op);
    }
}

const char *tt_verify_layouts(const Module *module, Arena *arena)
{
    Checker checker = {.arena = arena, .notes = {.arena = arena}};
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, check_op, &checker);
    return checker.failed ? tt_print_annotated(module, arena, 0, &checker.notes) : NULL;
}
