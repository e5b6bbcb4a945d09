/* SPDX-License-Identifier: Apache-2.0 */
/* A translator computes members of its output from its input. */
struct input { int ii; char ic; };
struct output { int doubled; char c; };
translator struct output < struct input *I > {
	doubled = I->ii * 2;
	c = I->ic;
};
BEGIN
{
	this->p = (struct input *)alloca(sizeof (struct input));
	this->p->ii = 21;
	this->p->ic = 'z';
	printf("%d ", xlate <struct output> (this->p).doubled);
	printf("%c\n", xlate <struct output *> (this->p)->c);
	exit(0);
}
/* output:
42 z

*/
