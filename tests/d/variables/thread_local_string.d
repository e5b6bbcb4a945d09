/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 18: storing 0 to a string deletes it. */
self string s;
BEGIN
{
	self->s = "abc";
	printf("%s ", self->s);
	self->s = 0;
	printf("%d\n", self->s == NULL);
	exit(0);
}
/* output:
abc 1

*/
