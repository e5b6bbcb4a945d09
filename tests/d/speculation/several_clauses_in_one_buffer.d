/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: several clauses speculate into one buffer, in their order. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	printf("one\n");
}
BEGIN
{
	speculate(this->s);
	printf("two\n");
}
BEGIN
{
	speculate(this->s);
	printf("three\n");
}
BEGIN
{
	commit(this->s);
}
BEGIN
{
	exit(0);
}
/* output:
one
two
three

*/
