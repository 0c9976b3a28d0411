/* Handlers of SIGSEGV that other libraries install after ours, and how they go on to the one before them. */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>

static struct sigaction before;
int called;

static void calls(int number, siginfo_t *info, void *context)
{
    called++;
    before.sa_sigaction(number, info, context);
}

static void raises(int number)
{
    called++;
    sigaction(number, &before, NULL);
    raise(number);
}

void install(int which)
{
    struct sigaction calling = {.sa_sigaction = calls, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction raising = {.sa_handler = raises, .sa_flags = SA_NODEFER | SA_ONSTACK};
    sigaction(SIGSEGV, which ? &raising : &calling, &before);
}
