/* SPDX-License-Identifier: Apache-2.0 */
/* A typedef of a pointer to int. */
typedef int *int_pointer_t;
BEGIN
{
	p = (int_pointer_t)alloca(8);
	*p = 12;
	printf("%d %d\n", *p, sizeof (int_pointer_t));
	exit(0);
}
/* output:
12 8

*/
