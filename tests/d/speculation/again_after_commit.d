/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: a buffer that was committed can be taken again, after a while. */
tick-200ms
{
	this->s = speculation();
	i++;
	speculate(this->s);
	printf("round %d\n", i);
}
tick-200ms
{
	commit(this->s);
}
tick-200ms
/i == 3/
{
	exit(0);
}
/* output:
round 1
round 2
round 3

*/
