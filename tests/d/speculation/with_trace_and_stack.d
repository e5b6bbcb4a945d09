/* SPDX-License-Identifier: Apache-2.0 */
/* Any data-recording action may be speculated. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	trace("traced ");
	trace(5);
	trace("\n");
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
traced 5

*/
