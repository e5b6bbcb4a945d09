/* SPDX-License-Identifier: Apache-2.0 */
/* Later ones count, and what they have besides stays theirs. */
/* flags: -q -x setenv=CLEW_A=1 -x setenv=CLEW_A=2 -x setenv=CLEW_B=x=y -x setenv=CLEW_C=3 -x unsetenv=CLEW_C -x unsetenv=TZ -c "sh -c 'echo $CLEW_A $CLEW_B [$CLEW_C] [$TZ] $LC_ALL'" */
/* output:
2 x=y [] [] C

*/
BEGIN
{
}
