/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() writes to scratch memory alone: no literal, no variable. */
/* stderr: invalid address */
BEGIN
{
	this->from = (char *)alloca(8);
	bcopy(this->from, (void *)"literal", 4);
	printf("wrong\n");
}
BEGIN
{
	printf("%s\n", "literal");
	exit(0);
}
/* output:
literal

*/
