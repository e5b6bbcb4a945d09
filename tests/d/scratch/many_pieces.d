/* SPDX-License-Identifier: Apache-2.0 */
/* Thirty pieces and more: each has its own bytes. */
BEGIN
{
	p0 = (int *)alloca(4);
	*p0 = 0;
	p1 = (int *)alloca(4);
	*p1 = 1;
	p2 = (int *)alloca(4);
	*p2 = 2;
	p3 = (int *)alloca(4);
	*p3 = 3;
	p4 = (int *)alloca(4);
	*p4 = 4;
	p5 = (int *)alloca(4);
	*p5 = 5;
	p6 = (int *)alloca(4);
	*p6 = 6;
	p7 = (int *)alloca(4);
	*p7 = 7;
	p8 = (int *)alloca(4);
	*p8 = 8;
	p9 = (int *)alloca(4);
	*p9 = 9;
	p10 = (int *)alloca(4);
	*p10 = 10;
	p11 = (int *)alloca(4);
	*p11 = 11;
	p12 = (int *)alloca(4);
	*p12 = 12;
	p13 = (int *)alloca(4);
	*p13 = 13;
	p14 = (int *)alloca(4);
	*p14 = 14;
	p15 = (int *)alloca(4);
	*p15 = 15;
	p16 = (int *)alloca(4);
	*p16 = 16;
	p17 = (int *)alloca(4);
	*p17 = 17;
	p18 = (int *)alloca(4);
	*p18 = 18;
	p19 = (int *)alloca(4);
	*p19 = 19;
	p20 = (int *)alloca(4);
	*p20 = 20;
	p21 = (int *)alloca(4);
	*p21 = 21;
	p22 = (int *)alloca(4);
	*p22 = 22;
	p23 = (int *)alloca(4);
	*p23 = 23;
	p24 = (int *)alloca(4);
	*p24 = 24;
	p25 = (int *)alloca(4);
	*p25 = 25;
	p26 = (int *)alloca(4);
	*p26 = 26;
	p27 = (int *)alloca(4);
	*p27 = 27;
	p28 = (int *)alloca(4);
	*p28 = 28;
	p29 = (int *)alloca(4);
	*p29 = 29;
	p30 = (int *)alloca(4);
	*p30 = 30;
	p31 = (int *)alloca(4);
	*p31 = 31;
	p32 = (int *)alloca(4);
	*p32 = 32;
	p33 = (int *)alloca(4);
	*p33 = 33;
	p34 = (int *)alloca(4);
	*p34 = 34;
	p35 = (int *)alloca(4);
	*p35 = 35;
	printf("%d %d %d\n", *p0 + *p29, *p30 + *p31, *p35);
	exit(0);
}
/* output:
29 61 35

*/
