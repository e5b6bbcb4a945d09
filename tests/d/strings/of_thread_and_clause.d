/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in all three scopes and in arrays. */
BEGIN
{
	s = "global";
	self->s = "thread";
	this->s = "clause";
	a["k"] = "element";
	self->b[1] = "threads";
}
BEGIN
{
	printf("%s %s %s %s %s\n", s, self->s, this->s, a["k"], self->b[1]);
	exit(0);
}
/* output:
global thread clause element threads

*/
