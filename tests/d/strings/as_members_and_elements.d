/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in structs and arrays, of every storage. */
struct s { int a; string t; int b; };
struct s g;
this struct s l;
self struct s v;
struct s m[int];
string e[3];
this string f[2];
BEGIN
{
	this->i = 2;
	g.t = "hello";
	g.b = 3;
	this->l = g;
	m[1] = g;
	g.t = "x";
	self->v.t = strjoin(g.t, "yz");
	self->v.b = 4;
	e[1] = "one";
	e[this->i] = strjoin(e[1], "two");
	this->f[this->i - 1] = "local";
	this->p = (struct s *)alloca(sizeof (struct s));
	this->p->t = "scratch";
	this->p->b = 5;
}
BEGIN
{
	printf("%s %s %s %d\n", g.t, this->l.t, m[1].t, m[1].b);
	printf("%s %d [%s] %s %s %s\n", self->v.t, self->v.b, e[0], e[1], e[this->i], this->f[1]);
	printf("%d %d\n", this->l.t == "hello", e[0] == "");
}
BEGIN
{
	this->p = (struct s *)alloca(sizeof (struct s));
	this->p->t = "scratch";
	this->p->b = 5;
	printf("%s %d\n", this->p->t, this->p->b);
	exit(0);
}
/* output:
x hello hello 3
xyz 4 [] one onetwo local
1 1
scratch 5

*/
