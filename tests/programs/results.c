/* Random programs: what they compute must not depend on whether it is recorded.
 *
 *     results SEED [ROUNDS [PROGRAMS]]     of each, each rank prints its number, its value and the sum of all values
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WORLD MPI_COMM_WORLD
#define ONE 1, MPI_UNSIGNED

static unsigned state;
static unsigned draw(unsigned n) { return (state = state * 1664525u + 1013904223u) >> 8, (state >> 8) % n; }

/* What a rank gets in one round, in which all draw the same `how` and `shift`. */
static unsigned exchanged(unsigned value, unsigned how, int me, int size, unsigned shift, int round)
{
    int to = (me + (int)shift) % size, from = (me + size - (int)shift) % size, flag = 0, n = 0, index, left = 2, which[2];
    int counts[64], places[64];
    unsigned other = 0, more = value ^ 77, many[64] = {0}, all[64] = {0};
    MPI_Request r[2];
    MPI_Status s, both[2];
    MPI_Message message;
    MPI_Comm part, second;
    for (int i = 0; i < size; i++) all[i] = value + (unsigned)i, counts[i] = 1, places[i] = i;
    switch (how) {
    case 0: MPI_Sendrecv(&value, ONE, to, round, &other, ONE, from, round, WORLD, &s); break;
    case 1:
        MPI_Irecv(&other, ONE, MPI_ANY_SOURCE, round, WORLD, r);
        MPI_Isend(&value, ONE, to, round, WORLD, r + 1);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Irecv(&other, ONE, from, MPI_ANY_TAG, WORLD, r);
        MPI_Send(&value, ONE, to, round, WORLD);
        while (!flag) MPI_Test(r, &flag, &s);
        other += (unsigned)s.MPI_SOURCE * 3 + (unsigned)s.MPI_TAG;
        break;
    case 3: MPI_Allreduce(&value, &other, ONE, MPI_BXOR, WORLD); break;
    case 4:
        MPI_Comm_split(WORLD, me % 2, shift ? me : -me, &part);
        MPI_Scan(&value, &other, ONE, MPI_SUM, part);
        MPI_Comm_free(&part);
        break;
    case 5: other = value, MPI_Bcast(&other, ONE, (int)shift, WORLD); break;
    case 6: /* persistent, three times */
        MPI_Send_init(&value, ONE, to, round, WORLD, r);
        MPI_Recv_init(&more, ONE, from, MPI_ANY_TAG, WORLD, r + 1);
        for (int i = 0; i < 3; i++) MPI_Startall(2, r), MPI_Waitall(2, r, both), other += more + (unsigned)both[1].MPI_TAG;
        MPI_Request_free(r), MPI_Request_free(r + 1);
        break;
    case 7:
        MPI_Isend(&value, ONE, to, round, WORLD, r);
        MPI_Probe(from, round, WORLD, &s), MPI_Get_count(&s, MPI_UNSIGNED, &n);
        MPI_Recv(&other, n, MPI_UNSIGNED, s.MPI_SOURCE, s.MPI_TAG, WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(r, &s);
        break;
    case 8:
        MPI_Isend(&value, ONE, to, round, WORLD, r);
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, round, WORLD, &flag, &message, &s);
        MPI_Imrecv(&other, ONE, &message, r + 1);
        while (left--) MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE), other += (unsigned)index & 0u;
        break;
    case 9:
        MPI_Irecv(&other, ONE, from, round, WORLD, r), MPI_Issend(&value, ONE, to, round, WORLD, r + 1);
        while (left) MPI_Testsome(2, r, &n, which, both), left -= n;
        break;
    case 10:
        MPI_Iallgather(&value, ONE, many, ONE, WORLD, r);
        MPI_Ialltoall(all, ONE, all + 32, ONE, WORLD, r + 1);
        while (!flag) MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; i < size; i++) other = other * 5 + many[i] + all[32 + i];
        break;
    case 11:
        MPI_Gatherv(&value, ONE, many, counts, places, MPI_UNSIGNED, (int)shift, WORLD);
        for (int i = 0; i < size; i++) many[i] += many[0];
        MPI_Scatter(many, ONE, &other, ONE, (int)shift, WORLD);
        break;
    case 12:
        MPI_Alltoallv(all, counts, places, MPI_UNSIGNED, many, counts, places, MPI_UNSIGNED, WORLD);
        MPI_Reduce_scatter_block(many, &other, ONE, MPI_SUM, WORLD);
        break;
    case 13: {
        MPI_Win window;
        if (size < 2) break; /* Open MPI 4 has none of one process */
        MPI_Win_create(all, sizeof all, sizeof *all, MPI_INFO_NULL, WORLD, &window);
        MPI_Win_fence(0, window);
        MPI_Put(&value, ONE, to, 40 + me, ONE, window);
        MPI_Get(&more, ONE, from, from, ONE, window);
        MPI_Win_fence(0, window);
        MPI_Accumulate(&value, ONE, to, 39, ONE, MPI_SUM, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
        other = all[40 + from] + all[39] * 3 + more;
        break;
    }
    case 14: {
        int periodic = 1, before, after;
        MPI_Comm_dup(WORLD, &part), MPI_Cart_create(part, 1, &size, &periodic, 0, &second);
        MPI_Cart_shift(second, 0, (int)shift, &before, &after);
        MPI_Sendrecv(&value, ONE, after, 1, &other, ONE, before, 1, second, MPI_STATUS_IGNORE);
        MPI_Neighbor_allgather(&value, ONE, many, ONE, second);
        other += many[0] * 3 + many[1];
        MPI_Comm_free(&second), MPI_Comm_free(&part);
        break;
    }
    case 15: { /* from a type that has gaps, in one piece, into one without; to nobody too */
        MPI_Datatype gaps;
        MPI_Type_vector(2, 1, 2, MPI_UNSIGNED, &gaps), MPI_Type_commit(&gaps);
        MPI_Irecv(many, 2, MPI_UNSIGNED, from, round, WORLD, r);
        MPI_Send(all, 1, gaps, to, round, WORLD);
        MPI_Send(all, 1, gaps, MPI_PROC_NULL, round, WORLD);
        MPI_Wait(r, &s), MPI_Get_count(&s, MPI_UNSIGNED, &n), MPI_Type_free(&gaps);
        other = many[0] + many[1] * 7 + (unsigned)n;
        break;
    }
    case 16:
        other = value, MPI_Sendrecv_replace(&other, ONE, to, round, from, MPI_ANY_TAG, WORLD, &s);
        MPI_Irecv(&more, ONE, me, 7777, WORLD, r), MPI_Cancel(r), MPI_Wait(r, &s);
        MPI_Test_cancelled(&s, &flag), other += (unsigned)flag;
        break;
    default: /* between two groups, where there are two */
        if (size < 2) break;
        MPI_Comm_split(WORLD, me % 2, me, &part);
        MPI_Intercomm_create(part, 0, WORLD, 1 - me % 2, 5, &second);
        MPI_Allgather(&value, ONE, many, ONE, second);
        for (int i = 0; i < size / 2; i++) other = other * 5 + many[i]; /* so many has the smaller one */
        MPI_Comm_free(&second), MPI_Comm_free(&part);
    }
    return other;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int me, size, rounds = count > 2 ? atoi(words[2]) : 200, programs = count > 3 ? atoi(words[3]) : 1;
    MPI_Comm_rank(WORLD, &me);
    MPI_Comm_size(WORLD, &size);
    if (size > 20) return 1; /* there is no room for more */
    for (int program = 0; program < programs; program++) {
        unsigned value = (unsigned)(me + 1) * 2654435761u, sum;
        state = (count > 1 ? (unsigned)atoi(words[1]) : 1) + (unsigned)program; /* the same draws on all ranks */
        for (int round = 0; round < rounds; round++) {
            unsigned shift = draw((unsigned)size), how = draw(18);
            value = value * 31 + exchanged(value, how, me, size, shift, round % 30000);
        }
        MPI_Allreduce(&value, &sum, ONE, MPI_SUM, WORLD);
        printf("%d %d %u %u\n", program, me, value, sum);
    }
    MPI_Finalize();
    return 0;
}
