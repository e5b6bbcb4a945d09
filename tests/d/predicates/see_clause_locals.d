/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 1 and 19: this-> variables in predicates. */
BEGIN
{
	this->go = 1;
}
BEGIN
/this->go/
{
	printf("gone\n");
	exit(0);
}
/* output:
gone

*/
