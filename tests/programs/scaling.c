/* Three MPI programs whose computing is so many operations, for a simulated cluster. Writes what each rank did. */
#include <mpi.h>
#include <smpi/smpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define W MPI_COMM_WORLD
#define X MPI_STATUS_IGNORE
static __thread FILE *out; static __thread int me, n;
static double now(void){return MPI_Wtime();}
static void E(const char*s){fprintf(out,"E %.9f %s\n",now(),s);}
static void L(const char*s){fprintf(out,"L %.9f %s\n",now(),s);}
static __thread unsigned long long st;
static double uni(void){unsigned long long z=st+=0x9e3779b97f4a7c15ull;z=(z^(z>>30))*0xbf58476d1ce4e5b9ull;z=(z^(z>>27))*0x94d049bb133111ebull;return((z^(z>>31))>>11)*0x1p-53;}
static double nrm(void){return sqrt(-2*log(1-uni()))*cos(2*M_PI*uni());}
static __thread double noise;
static void work(double flops){smpi_execute_flops(flops*exp(noise*nrm()));}
static void snd(void*b,int k,int to,int tag){E("MPI_Send");fprintf(out,"S %.9f %d %d %d\n",now(),to,tag,k);MPI_Send(b,k,MPI_BYTE,to,tag,W);L("MPI_Send");}
static void rcv(void*b,int k,int from,int tag){E("MPI_Recv");MPI_Recv(b,k,MPI_BYTE,from,tag,W,X);fprintf(out,"R %.9f %d %d %d\n",now(),from,tag,k);L("MPI_Recv");}
#define COLL(name,kind,root,s,r,call) do{E(name);fprintf(out,"B %.9f\n",now());call;fprintf(out,"C %.9f %d %d %lld %lld\n",now(),kind,root,(long long)(s),(long long)(r));L(name);}while(0)
/* OTF2 kinds: 0 barrier 1 bcast 2 gather 4 scatter 6 allgather 8 alltoall 11 allreduce 12 reduce */
static char *big;
static void heat(void){
  double cells=4e8; int rows=1<<15;
  E("input"); if(!me) work(3e8); COLL("MPI_Bcast",1,0,me?0:1<<20,1<<20,MPI_Bcast(big,1<<20,MPI_BYTE,0,W)); L("input");
  E("setup"); work(6*cells/n); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("setup");
  E("solve"); for(int i=0;i<60;i++){ E("sweep"); work(cells/n); L("sweep");
    int up=me+1,dn=me-1;
    if(me%2==0){ if(up<n){snd(big,rows*8,up,i);rcv(big,rows*8,up,i);} if(dn>=0){snd(big,rows*8,dn,i);rcv(big,rows*8,dn,i);} }
    else { if(dn>=0){rcv(big,rows*8,dn,i);snd(big,rows*8,dn,i);} if(up<n){rcv(big,rows*8,up,i);snd(big,rows*8,up,i);} }
    double a=1,b; COLL("MPI_Allreduce",11,0,8,8,MPI_Allreduce(&a,&b,1,MPI_DOUBLE,MPI_SUM,W)); }
  L("solve");
  E("output"); int part=(1<<24)/n; COLL("MPI_Gather",2,0,part,me?0:1<<24,MPI_Gather(big,part,MPI_BYTE,big,part,MPI_BYTE,0,W)); if(!me) work(8e8); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("output");
}
static void cg(void){
  double nz=3e8; int rows=1<<18;
  E("assemble"); work(20*nz/n); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("assemble");
  E("cg"); for(int i=0;i<40;i++){ int part=rows*8/n; COLL("MPI_Allgather",6,0,part,rows*8,MPI_Allgather(big,part,MPI_BYTE,big+(1<<25),part,MPI_BYTE,W));
    E("multiply"); work(2*nz/n); L("multiply"); double a=1,b;
    for(int k=0;k<2;k++){COLL("MPI_Allreduce",11,0,8,8,MPI_Allreduce(&a,&b,1,MPI_DOUBLE,MPI_SUM,W)); work(3.0*rows/n);} }
  L("cg");
  E("precondition"); /* a triangular solve in a chain: blocks one after the other */
  for(int b=0;b<16;b++){ if(me>0) rcv(big,1<<14,me-1,1000+b); work(1.5e9/16/n); if(me<n-1) snd(big,1<<14,me+1,1000+b); }
  COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("precondition");
  E("check"); work(2e8); double a=1,b; COLL("MPI_Allreduce",11,0,8,8,MPI_Allreduce(&a,&b,1,MPI_DOUBLE,MPI_SUM,W)); L("check");
}
static void fft(void){
  double N=1<<23; double rowflops=20*N*log2(N)/2; 
  E("plan"); work(4e8); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("plan");
  E("rows"); work(rowflops/n); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("rows");
  E("transpose"); for(int i=0;i<6;i++){int part=(int)(N*4/n/n); COLL("MPI_Alltoall",8,0,part*(long long)n,part*(long long)n,MPI_Alltoall(big,part,MPI_BYTE,big+(1<<25),part,MPI_BYTE,W));} L("transpose");
  E("columns"); work(rowflops*1.5/n*(1+0.3*me/n)); COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("columns");
  E("reduce"); for(int i=0;i<8;i++){ work(2e8/n); COLL("MPI_Reduce",12,0,1<<20,me?0:1<<20,MPI_Reduce(big,big+(1<<25),1<<17,MPI_DOUBLE,MPI_SUM,0,W)); if(!me) work(3e7);} COLL("MPI_Barrier",0,0,0,0,MPI_Barrier(W)); L("reduce");
}
int main(int c,char**v){
  MPI_Init(&c,&v); MPI_Comm_rank(W,&me); MPI_Comm_size(W,&n);
  noise=c>3?atof(v[3]):0; st=1234567ull*(me+1)+(c>4?atoll(v[4])*7919:0)+n*104729ull;
  char name[300]; snprintf(name,300,"%s.%d",v[2],me); out=fopen(name,"w"); big=calloc(1<<26,1);
  MPI_Barrier(W); E("main");
  if(!strcmp(v[1],"heat")) heat(); else if(!strcmp(v[1],"cg")) cg(); else fft();
  L("main"); fclose(out); MPI_Finalize(); return 0;}
