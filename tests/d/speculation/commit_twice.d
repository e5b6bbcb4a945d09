/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: a second commit is harmless. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	printf("once\n");
}
BEGIN
{
	commit(this->s);
}
BEGIN
{
	commit(this->s);
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
once

*/
