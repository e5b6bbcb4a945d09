/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a translator may be a struct itself; that of a pointer is another one. */
struct in { int a; char b[8]; };
struct out { int twice; string name; };
translator struct out < struct in I > {
	twice = I.a * 2;
	name = stringof(I.b);
};
translator struct out < struct in *P > {
	twice = -P->a;
	name = "pointer";
};
struct in s;
struct in many[int];
BEGIN
{
	s.a = 21;
	s.b[0] = 'h';
	s.b[1] = 'i';
	many[7] = s;
	s.a = 4;
	this->out = xlate < struct out > (many[7]);
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->a = 1;
	printf("%d %s, ", xlate < struct out > (s).twice, xlate < struct out > (s).name);
	printf("%d %s, ", this->out.twice, this->out.name);
	printf("%d %s\n", xlate < struct out > (this->p).twice, xlate < struct out > (this->p).name);
	exit(0);
}
/* output:
8 hi, 42 hi, -1 pointer

*/
