/* SPDX-License-Identifier: Apache-2.0 */
/* An associative array of a thread. */
BEGIN
{
	self->a["k"] = 3;
	self->a["l"] = 4;
	printf("%d %d %d\n", self->a["k"], self->a["l"], self->a["m"]);
	exit(0);
}
/* output:
3 4 0

*/
