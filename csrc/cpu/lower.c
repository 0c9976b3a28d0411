/* Regions, group by group; scalars where they stand in the program, or earlier when a nest that moved up needs them. */
#include "cpu/lower.h"

void straight(Lower *l) { l->e->b = l->builders[0]; }

LLVMValueRef buffer_pointer(Lower *l, const Buffer *buffer)
{
    return buffer->outside ? buffer->outside : emit_offset(l->e, l->scratch, buffer->offset);
}

/* ---- scalars ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef emit_scalar(Lower *l, Op *op)
{
    Emit *e = l->e;
    LLVMValueRef operands[8];
    if (op->operand_count > (int)TT_COUNT(operands))
        tt_unsupported(op->loc, "the CPU calls functions of at most %zu arguments", TT_COUNT(operands));
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = lower_scalar(l, tt_operand(op, i));
    straight(l);
    switch (op->opcode) {
    case OP_constant:
        return const_scalar(e, op->results[0]->type, tt_find_attr(op, ATTR_value));
    case OP_program_id:
        return l->program[tt_int_attr(op, ATTR_axis, 0)];
    case OP_num_programs:
        return l->grid[tt_int_attr(op, ATTR_axis, 0)];
    case OP_hint:
        return operands[0];
    default:
        if (!tt_has(op, ELEMENTWISE))
            tt_bug("cpu: no scalar operation %s", tt_op_infos[op->opcode].name);
        return emit_elementwise(e, op, operands);
    }
}

LLVMValueRef lower_scalar(Lower *l, Value *value)
{
    ValueInfo *info = info_of(value);
    if (info->scalar)
        return info->scalar;
    if (!value->op || !is_pure_scalar(value->op))
        tt_bug("cpu: a scalar is used before it is computed");
    return info->scalar = emit_scalar(l, value->op);
}

/* ---- regions ------------------------------------------------------------------------------------------------------------------ */

void lower_copy(Lower *l, Value *value, Buffer *to, int64_t origin)
{
    Group group = {.space = value->type, .axis = -1};
    tt_push(l->arena, group.sinks, ((Sink){.kind = SINK_COPY, .value = value, .to = to, .origin = origin}));
    emit_nest(l, &group);
}

static void lower_cat(Lower *l, Op *op)
{
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    const Type *type = op->results[0]->type, *first = tt_operand(op, 0)->type;
    int64_t origin = first->shape[axis];
    for (int i = axis + 1; i < type->rank; i++)
        origin *= type->shape[i];
    Buffer *buffer = info_of(op->results[0])->buffer;
    lower_copy(l, tt_operand(op, 0), buffer, 0);
    lower_copy(l, tt_operand(op, 1), buffer, origin);
    info_of(op->results[0])->stored = true;
}

static void lower_step(Lower *l, Op *op)
{
    switch (op->opcode) {
    case OP_for:
        lower_for(l, op);
        break;
    case OP_while:
        lower_while(l, op);
        break;
    case OP_if:
        lower_if(l, op);
        break;
    case OP_load:
        lower_scalar_load(l, op);
        break;
    case OP_store:
        lower_scalar_store(l, op);
        break;
    case OP_atomic_rmw:
    case OP_atomic_cas:
        lower_scalar_atomic(l, op);
        break;
    case OP_cat:
        lower_cat(l, op);
        break;
    case OP_dot:
        lower_dot(l, op);
        break;
    case OP_call:
        lower_call(l, op);
        break;
    case OP_clock:
        lower_clock(l, op);
        break;
    case OP_print:
        lower_print(l, op);
        break;
    default:
        tt_unsupported(op->loc, "the CPU target has no '%s' yet", tt_op_infos[op->opcode].name);
    }
}

static void lower_copies(Lower *l, const RegionPlan *plan)
{
    for (int i = 0; i < plan->copies.count; i++) {
        const YieldCopy *copy = &plan->copies.data[i];
        if (copy->by_way_of)
            lower_copy(l, copy->value, copy->by_way_of, 0);
    }
    for (int i = 0; i < plan->copies.count; i++) {
        const YieldCopy *copy = &plan->copies.data[i];
        if (!copy->by_way_of) {
            lower_copy(l, copy->value, copy->to, 0);
            continue;
        }
        straight(l);
        LLVMBuildMemCpy(l->e->b, buffer_pointer(l, copy->to), 64, buffer_pointer(l, copy->by_way_of), 64,
                        const_int(l->e->i64, copy->to->bytes));
    }
}

/* The pure scalars from `op` on, up to a position in the region; the operation there. */
static Op *lower_scalars(Lower *l, Op *op, int end)
{
    for (; op && l->places[op->index].position < end; op = op->next)
        if (is_pure_scalar(op))
            lower_scalar(l, op->results[0]);
    return op;
}

void lower_region(Lower *l, Region *region)
{
    const RegionPlan *plan = plan_of(l, region);
    Op *next = region->first;
    for (int i = 0; i < plan->groups.count; i++) {
        const Group *group = plan->groups.data[i];
        straight(l);
        next = lower_scalars(l, next, group->position);
        if (group->step)
            lower_step(l, group->step);
        else
            emit_nest(l, group);
    }
    straight(l);
    lower_scalars(l, next, NEVER);
    lower_copies(l, plan);
    straight(l);
}
