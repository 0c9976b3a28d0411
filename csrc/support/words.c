/* Which word somebody may have meant, for "did you mean". */
#include "support/support.h"
#include <strings.h>

/* Edits (insert, remove, change, swap neighbours) from one name to the other, or limit + 1. */
static int edit_distance(const char *a, const char *b, int limit)
{
    enum { LONGEST = 64 };
    if (!strcasecmp(a, b))
        return 0;
    int m = (int)strlen(a), n = (int)strlen(b);
    if (m > LONGEST || n > LONGEST || m - n > limit || n - m > limit)
        return limit + 1;
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = TT_MIN(change, TT_MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = TT_MIN(row[j], above2[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

void tt_consider_word(const char *name, const char *candidate, int *best_distance, const char **best)
{
    int distance = edit_distance(name, candidate, *best_distance - 1);
    if (distance < *best_distance) {
        *best_distance = distance;
        *best = candidate;
    }
}

int tt_word_limit(const char *name)
{
    return (int)strlen(name) / 3 +
           1; /* exclusive: of one or two letters, only upper and lower case may differ */
}

const char *tt_closest_word(const char *name, const char *const *candidates, int count)
{
    const char *best = NULL;
    int limit = tt_word_limit(name);
    for (int i = 0; i < count; i++)
        tt_consider_word(name, candidates[i], &limit, &best);
    return best;
}
