/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: what was speculated is printed when it is committed. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	printf("speculated\n");
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
speculated

*/
