/* SPDX-License-Identifier: Apache-2.0 */
/* Bit-fields through a pointer. */
struct flags { unsigned int a : 1; unsigned int b : 2; unsigned int c : 5; };
BEGIN
{
	this->f = (struct flags *)alloca(sizeof (struct flags));
	this->f->a = 1;
	this->f->b = 2;
	this->f->c = 19;
	printf("%d %d %d %x\n", this->f->a, this->f->b, this->f->c, *(uint8_t *)this->f);
	this->f->b++;
	printf("%d %d %d\n", this->f->a, this->f->b, this->f->c);
	exit(0);
}
/* output:
1 2 19 9d
1 3 19

*/
