/* What spt_delay.f90 calls: the delay of spt_delay.h under a name that Fortran binds to. */
#include "spt_delay.h"

void spt_delay_out_of_line(long units)
{
    spt_delay((unsigned long)units);
}
