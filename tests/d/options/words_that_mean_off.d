/* SPDX-License-Identifier: Apache-2.0 */
/* Each of them, in any case, takes back what was on: no error, no quiet row, no sorting by keys. */
/* flags: -q -F -Z -x quiet=No -x flowindent=Disabled -x zdefs=UNSET -x aggsortkey -x errtags -xcpp */
/* processor: 0 */
#pragma D option aggsortkey=oFF
#pragma D option errtags=disable
#pragma D option aggsortrev=false
#pragma D option droptags=0
#pragma D option destructive=unset
#pragma D option rawbytes=FALSE
BEGIN
{
	@[1] = sum(2);
	@[2] = sum(1);
	exit(0);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      1                           :BEGIN 

        2                1
        1                2
*/
