/* SPDX-License-Identifier: Apache-2.0 */
/* A translated object can be kept as a whole, and so can its address. */
struct in { int a; int b; };
struct out { int sum; string text; char name[4]; unsigned low : 3; };
translator struct out < struct in *P > {
	sum = P->a + P->b;
	text = P->a > 1 ? "big" : "small";
	name = "abcdef";
	low = 13;
};
BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->a = 2;
	this->p->b = 3;
	this->whole = xlate <struct out> (this->p);
	this->address = xlate <struct out *> (this->p);
	kept = this->whole;
	printf("%d %s %s %d\n", this->whole.sum, this->whole.text, this->whole.name,
	    this->whole.low);
	printf("%d %s\n", this->address->sum, this->address->text);
}
BEGIN
{
	printf("%d %s\n", kept.sum, kept.text);
	exit(0);
}
/* output:
5 big abc 5
5 big
5 big

*/
