/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of arrays in thread-local and associative variables, by an index that is no constant. */
struct s { int x[4]; struct { short a; char b; } e[2]; };
struct s m[string];
self int t[4];
BEGIN
{
	this->i = 3;
	m["a"].x[this->i] = 5;
	m["a"].x[1] = 2;
	m["a"].x[this->i]++;
	m["a"].e[this->i - 2].a = 7;
	self->t[this->i] = 9;
	self->t[this->i - 1] += 4;
	printf("%d %d %d %d %d\n", m["a"].x[3], m["a"].x[1], m["a"].e[1].a, self->t[3], self->t[2]);
	exit(0);
}
/* output:
6 2 7 9 4

*/
