/* How much a program does, counted in the tile IR: for estimates of its time. Loops count as often as they run, which is
 * worked out from what is known of the parameters; a bound that stays unknown counts as a few rounds. */
#include "analysis/analysis.h"

enum { GUESSED_ROUNDS = 16, OF_COSTLY = 8 /* times a plain operation's price */ };

typedef struct Counter {
    Arena *arena;
    const WorkInputs *inputs;
    Map known; /* Value* -> Known* */
    Work work;
} Counter;

typedef struct Known {
    bool is_known;
    Scalar scalar;
} Known;

static Known evaluate(Counter *c, const Value *value);

static Known evaluate_op(Counter *c, const Op *op)
{
    Scalar operands[3], result;
    const Known unknown = {false, {0}};
    if (op->opcode == OP_constant) {
        const Attr *attr = tt_find_attr(op, ATTR_value);
        result.i = attr->i; /* of a float the same bits */
        return (Known){true, result};
    }
    if (op->opcode == OP_program_id || op->opcode == OP_num_programs) {
        int32_t extent = c->inputs->grid[tt_int_attr(op, ATTR_axis, 0)];
        result.i = op->opcode == OP_program_id ? extent / 2 : extent; /* one in the middle speaks for all */
        return (Known){true, result};
    }
    if (!tt_has(op, PURE) || !tt_has(op, ELEMENTWISE) || op->operand_count > 3)
        return unknown;
    for (int i = 0; i < op->operand_count; i++) {
        Known operand = evaluate(c, tt_operand(op, i));
        if (!operand.is_known)
            return unknown;
        operands[i] = operand.scalar;
    }
    const Type *type = tt_operand(op, op->operand_count - 1)->type;
    if (!tt_eval_scalar(op->opcode, type, op->results[0]->type, operands, &result))
        return unknown;
    return (Known){true, result};
}

/* Of scalars. Arguments of regions are put into the map by who visits the region. */
static Known evaluate(Counter *c, const Value *value)
{
    const Known *found = tt_map_find_ptr(&c->known, value);
    if (found)
        return *found;
    Known result = {false, {0}};
    if (!tt_is_tile(value->type) && value->op && !value->op->region_count)
        result = evaluate_op(c, value->op);
    *tt_map_slot_ptr(&c->known, value) = tt_arena_copy(c->arena, &result, sizeof result);
    return result;
}

static void know(Counter *c, const Value *value, int64_t number)
{
    Known known = {true, {.i = number}};
    *tt_map_slot_ptr(&c->known, value) = tt_arena_copy(c->arena, &known, sizeof known);
}

static double elements_of(const Type *type)
{
    double count = 1;
    for (int i = 0; tt_is_tile(type) && i < type->rank; i++)
        count *= (double)type->shape[i];
    return count;
}

static double bytes_of(const Type *type) { return elements_of(type) * tt_byte_width(type); }

static void count_dot(Work *work, const Op *op, double times)
{
    const Type *a = tt_operand(op, 0)->type, *b = tt_operand(op, 1)->type, *sum = op->results[0]->type;
    work->multiplications += times * elements_of(sum) * (double)a->shape[a->rank - 1];
    work->operand_bytes += times * (bytes_of(a) + bytes_of(b));
    work->sum_bytes += times * bytes_of(sum);
    work->operand_width = TT_MAX(work->operand_width, tt_byte_width(a));
}

static void visit_region(Counter *c, const Region *region, double times);

static double rounds_of(Counter *c, const Op *loop)
{
    Known lower = evaluate(c, tt_operand(loop, 0)), upper = evaluate(c, tt_operand(loop, 1)),
          step = evaluate(c, tt_operand(loop, 2));
    if (!lower.is_known || !upper.is_known || !step.is_known || step.scalar.i <= 0)
        return GUESSED_ROUNDS;
    double rounds = ((double)upper.scalar.i - (double)lower.scalar.i) / (double)step.scalar.i;
    int64_t middle = lower.scalar.i + (int64_t)(rounds / 2) * step.scalar.i;
    know(c, loop->regions[0]->args[0], middle);
    return rounds <= 0 ? 0 : (double)(int64_t)(rounds + 0.999999);
}

static void count(Counter *c, const Op *op, double times)
{
    Work *work = &c->work;
    if (op->opcode == OP_dot)
        count_dot(work, op, times);
    else if (op->opcode == OP_smem_store ||
             (op->opcode == OP_convert_layout && tt_find_attr(op, ATTR_scratch)))
        work->crossed += times * bytes_of(tt_operand(op, 0)->type);
    else if (op->opcode == OP_load)
        work->loaded_bytes += times * bytes_of(op->results[0]->type);
    else if (op->opcode == OP_store)
        work->stored_bytes += times * bytes_of(tt_operand(op, 1)->type);
    else if (tt_has(op, ACCESS))
        work->atomics += times * elements_of(tt_operand(op, 0)->type);
    else if (op->opcode == OP_reduce || op->opcode == OP_scan)
        work->exchanged += times * elements_of(tt_operand(op, 0)->type);
    else if (op->result_count && tt_has(op, ELEMENTWISE) && tt_is_tile(op->results[0]->type))
        work->operations += times * elements_of(op->results[0]->type) * (tt_has(op, COSTLY) ? OF_COSTLY : 1);
    if (tt_is_loop(op)) {
        double rounds = op->opcode == OP_for ? rounds_of(c, op) : GUESSED_ROUNDS;
        work->rounds += times * rounds;
        for (int i = 0; i < op->region_count; i++)
            visit_region(c, op->regions[i], times * rounds);
    } else if (tt_is_control(op)) {
        for (int i = 0; i < op->region_count; i++)
            visit_region(c, op->regions[i], times);
    }
}

static void visit_region(Counter *c, const Region *region, double times)
{
    TT_FOR_OPS(op, region) { count(c, op, times); }
}

Work tt_count_work(const Function *kernel, const WorkInputs *inputs, Arena *arena)
{
    Counter counter = {.arena = arena, .inputs = inputs, .known = {.arena = arena}};
    for (int i = 0; i < inputs->count && i < kernel->body->arg_count; i++)
        if (inputs->known[i] && tt_is_int(kernel->body->args[i]->type))
            know(&counter, kernel->body->args[i], inputs->numbers[i]);
    visit_region(&counter, kernel->body, 1);
    return counter.work;
}
